// Package queue keeps a receiver that blocks from delaying those who send to it. A log
// that is a full pipe, or a function of the user's program, may block for minutes; a
// replica that waited for it could not renew its leases.
package queue

import (
	"sync"
	"time"
)

const (
	LastItems = 5 * time.Second // how long Run, RunDue, RunNow and a program wait for their items before they return
	blocked   = 3 * time.Minute // an item that takes this long is trouble, which Health shows
)

// A Queue hands items to Take, in order, in a goroutine of its own. The goroutine starts
// with an item and ends when none is left, so an idle queue has none, and nothing has to
// close the queue.
type Queue[T any] struct {
	Take func(T)       // may block
	Most int           // items that wait for Take; further ones are dropped, since memory is bounded
	Lost func(n int) T // returns the item that says how many were dropped, at the place where they are missing

	mu   sync.Mutex    // guards all below
	wait []T           // those that wait
	lost int           // dropped since the last item of Lost
	from time.Time     // when Take was last called; zero: the goroutine does not run
	idle chan struct{} // closed when no item is left; a new one for each goroutine
}

// Add hands an item over. It never calls Take and never waits for it.
func (q *Queue[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.wait) >= q.Most {
		q.lost++
		return
	}
	q.tellLost()
	q.wait = append(q.wait, item)
	if q.from.IsZero() {
		q.from, q.idle = time.Now(), make(chan struct{})
		go q.work()
	}
}

// work is the goroutine: it hands over items until none is left. It must not hold mu while
// Take works, since Add would then wait for Take. If Take ends the goroutine by
// runtime.Goexit, another one goes on with the items that are left.
func (q *Queue[T]) work() {
	done := false
	defer func() {
		if !done {
			go q.work()
		}
	}()
	for item, ok := q.next(); ok; item, ok = q.next() {
		q.Take(item)
	}
	done = true
}

// next returns the next item. If there is none, it returns false and the goroutine must
// end: the next item starts another one.
func (q *Queue[T]) next() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.wait) == 0 {
		q.tellLost()
	}
	if len(q.wait) == 0 {
		q.from = time.Time{}
		close(q.idle)
		return item, false
	}
	item, q.wait, q.from = q.wait[0], q.wait[1:], time.Now()
	return item, true
}

// tellLost adds the item about dropped items where they are missing. The caller holds mu.
func (q *Queue[T]) tellLost() {
	if q.lost > 0 {
		q.wait, q.lost = append(q.wait, q.Lost(q.lost)), 0
	}
}

// Wait returns when all items are handed over, or when one item has kept Take busy for
// patience. The time counts from the beginning of that item, so that a receiver that
// blocks delays the first caller and not every caller anew.
func (q *Queue[T]) Wait(patience time.Duration) {
	q.mu.Lock()
	idle, from := q.idle, q.from
	q.mu.Unlock()
	if from.IsZero() {
		return
	}
	t := time.NewTimer(patience - time.Since(from))
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}

// Blocked returns since when Take has been busy with one item, if that is three minutes or
// more. Else it returns zero.
func (q *Queue[T]) Blocked() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.from.IsZero() || time.Since(q.from) < blocked {
		return time.Time{}
	}
	return q.from
}
