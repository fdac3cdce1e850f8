package ontime

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// An Agenda rings alarms, each at its own instant, with one timer and one goroutine for all of
// them: ten thousand alarms that wait cost no more than their places in a queue.
type Agenda struct {
	mu    sync.Mutex
	wait  queue
	set   int64         // counts calls of Set: alarms of one instant ring in the order in which they were set
	over  bool          // the context of Run has ended
	first chan struct{} // has room for one: the first of the queue has changed
}

// NewAgenda returns an agenda without alarms.
func NewAgenda() *Agenda { return &Agenda{first: make(chan struct{}, 1)} }

// An Alarm rings once for each time that it is set.
type Alarm struct {
	Ring func() // called in a goroutine of its own; it may take long, and may set the alarm again

	agenda  atomic.Pointer[Agenda] // that it was last set in; nil: none
	hurried atomic.Bool            // Hurry was called, and the alarm has not rung since

	// Guarded by the mutex of the agenda.
	at    time.Time
	order int64 // of the call that set it
	place int   // in the queue, counted from one; zero: it is not there
}

// Set has the alarm ring after d, or at once if it was hurried since it last rang. An alarm is
// set in one agenda at a time. It returns false if the context of Run has ended: then the alarm
// will not ring.
func (g *Agenda) Set(a *Alarm, d time.Duration) bool {
	at := time.Now().Add(d)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		a.agenda.Store(nil)
		return false
	}
	a.agenda.Store(g)
	g.set++
	a.at, a.order = at, g.set
	if a.hurried.Load() {
		a.at = time.Time{}
	}
	g.put(a)
	return true
}

// Hurry has the alarm ring now. If it is not set, it rings as soon as it is. Any goroutine may
// call it.
func (a *Alarm) Hurry() {
	a.hurried.Store(true)
	if g := a.agenda.Load(); g != nil {
		g.hurry(a)
	}
}

// hurry moves an alarm to the front, if it waits.
func (g *Agenda) hurry(a *Alarm) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.agenda.Load() == g && a.place > 0 {
		a.at = time.Time{}
		g.put(a)
	}
}

// put puts an alarm in its place, and lets the timer know if that is the first. The caller
// holds mu.
func (g *Agenda) put(a *Alarm) {
	if a.place == 0 {
		heap.Push(&g.wait, a)
	} else {
		heap.Fix(&g.wait, a.place-1)
	}
	if a.place == 1 {
		select {
		case g.first <- struct{}{}:
		default: // the timer is about to look
		}
	}
}

// Run rings the alarms until ctx ends. Then each alarm that still waits rings a last time, and
// none can be set any more. Run returns when all that ring have returned.
func (g *Agenda) Run(ctx context.Context) {
	var ringing sync.WaitGroup
	defer ringing.Wait()
	t := time.NewTimer(Longest) // ringDue says when
	defer t.Stop()
	for ctx.Err() == nil {
		if nap, some := g.ringDue(&ringing); some {
			t.Reset(nap)
		} else {
			t.Stop()
		}
		select {
		case <-t.C:
		case <-g.first:
		case <-ctx.Done():
		}
	}
	g.end(&ringing)
}

// ringDue rings what is due, and returns how long to sleep then. It returns false if no alarm
// waits.
func (g *Agenda) ringDue(ringing *sync.WaitGroup) (nap time.Duration, some bool) {
	for {
		a, left := g.next()
		if a == nil {
			return 0, false
		}
		if left > 0 {
			return Nap(left), true
		}
		ringing.Go(a.Ring)
		runtime.Gosched()
	}
}

// next takes the first alarm if it is due. Else it returns how long that takes; nil: no alarm
// waits.
func (g *Agenda) next() (a *Alarm, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wait) == 0 {
		return nil, 0
	}
	a = g.wait[0]
	if left = time.Until(a.at); left <= 0 {
		heap.Pop(&g.wait)
		a.hurried.Store(false)
	}
	return a, left
}

// end rings all that wait.
func (g *Agenda) end(ringing *sync.WaitGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for len(g.wait) > 0 {
		a := heap.Pop(&g.wait).(*Alarm)
		a.agenda.Store(nil)
		ringing.Go(a.Ring)
	}
}
