// Package alarmtest has a queue of alarms in memory, for tests in virtual time.
package alarmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
)

// ErrUnclear is the error of a call whose answer was lost.
var ErrUnclear = errors.New("the answer was lost")

// A Call is one call of a Queue.
type Call struct {
	N  int    // from 1, counted over all operations
	Op string // "put", "receive" or "delete"
}

// A Fate is what becomes of a call. The zero Fate: it succeeds.
type Fate struct {
	Err  error // what the caller gets; nil: success
	Done bool  // with an Err: the call is applied nevertheless
}

// A Queue is an [alarm.Queue] in memory. The zero value is an empty queue. Its methods may be called by many goroutines.
type Queue struct {
	Meet func(c Call) Fate // decides about each call, and may wait; nil: all succeed
	Name string            // what String returns

	mu       sync.Mutex
	calls    int
	count    map[string]int
	ids      int
	messages []Stored
}

var _ alarm.Queue = (*Queue)(nil)

// A Stored is a message in the queue.
type Stored struct {
	alarm.Message           // as the last Receive of it has returned it, or as it was put
	Visible       time.Time // from when on it can be received
}

// String says which queue it is.
func (q *Queue) String() string { return q.Name }

// Put adds a message.
func (q *Queue) Put(ctx context.Context, body []byte, hidden time.Duration) (r alarm.Receipt, err error) {
	err = q.call(ctx, "put", func() error {
		if hidden < 0 || hidden > 7*24*time.Hour || hidden%time.Second != 0 {
			return fmt.Errorf("a message cannot be invisible for %s: want whole seconds, from zero to seven days", hidden)
		}
		r = q.add(body, time.Now().Truncate(time.Second), time.Now().Add(hidden))
		return nil
	})
	return r, err
}

// Receive returns messages that are visible, those first that have been so for the longest time.
func (q *Queue) Receive(ctx context.Context, most int, hide time.Duration) (got []alarm.Message, err error) {
	err = q.call(ctx, "receive", func() error {
		if most < 1 || most > 32 || hide < time.Second || hide > 7*24*time.Hour {
			return fmt.Errorf("%d messages hidden for %s: want 1 to 32, hidden for a second to seven days", most, hide)
		}
		now := time.Now()
		slices.SortStableFunc(q.messages, func(a, b Stored) int { return a.Visible.Compare(b.Visible) })
		for i := range q.messages {
			m := &q.messages[i]
			if len(got) == most || m.Visible.After(now) {
				break
			}
			m.Dequeued++
			m.Pop = fmt.Sprint(m.Dequeued)
			got = append(got, m.Message)
			m.Visible = now.Add(hide)
		}
		return nil
	})
	if err != nil {
		got = nil
	}
	return got, err
}

// Delete removes a message, unless its receipt is old.
func (q *Queue) Delete(ctx context.Context, r alarm.Receipt) error {
	return q.call(ctx, "delete", func() error {
		q.messages = slices.DeleteFunc(q.messages, func(m Stored) bool { return m.Receipt == r })
		return nil
	})
}

// call applies a call as its fate is.
func (q *Queue) call(ctx context.Context, op string, apply func() error) error {
	var f Fate
	q.mu.Lock()
	q.calls++
	if q.count == nil {
		q.count = map[string]int{}
	}
	q.count[op]++
	c, meet := Call{q.calls, op}, q.Meet
	q.mu.Unlock()
	if meet != nil {
		f = meet(c)
	}
	if err := ctx.Err(); err != nil && f.Err == nil {
		return err
	}
	if f.Err != nil && !f.Done {
		return f.Err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := apply(); err != nil {
		return err
	}
	return f.Err
}

// Add puts a message that is not the caller's: anything, visible from an instant on, inserted at another.
func (q *Queue) Add(body string, inserted, visible time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add([]byte(body), inserted, visible)
}

func (q *Queue) add(body []byte, inserted, visible time.Time) alarm.Receipt {
	q.ids++
	r := alarm.Receipt{ID: fmt.Sprintf("m%d", q.ids), Pop: "0"}
	q.messages = append(q.messages, Stored{alarm.Message{Receipt: r, Body: slices.Clone(body), Inserted: inserted}, visible})
	return r
}

// All returns the messages in the queue, those first that are visible first.
func (q *Queue) All() []Stored {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.messages)
	slices.SortStableFunc(all, func(a, b Stored) int { return a.Visible.Compare(b.Visible) })
	return all
}

// Visible returns how many messages can be received at an instant.
func (q *Queue) Visible(at time.Time) (n int) {
	for _, m := range q.All() {
		if !m.Visible.After(at) {
			n++
		}
	}
	return n
}

// First returns when the first message is or was visible; zero: the queue is empty.
func (q *Queue) First() time.Time {
	if all := q.All(); len(all) > 0 {
		return all[0].Visible
	}
	return time.Time{}
}

// Counts returns the calls so far by operation, and resets them.
func (q *Queue) Counts() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.count
	q.count = nil
	return n
}
