// Package mutex lets any code run under a lease of its own: one caller of all replicas at a time, or
// as many as there are slots. Each slot has an entry as a job has one, and a caller takes it by the
// acquisition, the record and the token of a run by hand: see runner.Runner.Take. What is new here is
// only how a caller waits for its turn.
package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Mutex is one lock as one process sees it. Its methods may be called by many goroutines.
type Mutex struct {
	slots  []*runner.Runner
	clock  *lease.Clock
	jitter *lease.Jitter
	length time.Duration // of a lease

	room chan struct{} // has room for as many callers of this process as there are slots
	turn chan struct{} // has room for one: the caller that looks for a free slot

	stint stint
}

// New returns the lock that has these slots, of one replica.
func New(r *runner.Replica, slots []*runner.Runner, length time.Duration) *Mutex {
	return &Mutex{slots: slots, clock: r.Clock, jitter: lease.NewJitter(r.Name + slots[0].Name()), length: length,
		room: make(chan struct{}, len(slots)), turn: make(chan struct{}, 1)}
}

// A Work is what is done under a lease.
type Work func(context.Context, *supervise.Handle) error

// Do waits for a slot until ctx ends, does work under its lease, and returns the error of work.
func (m *Mutex) Do(ctx context.Context, work Work) error {
	waited, err := enter(ctx, m.room)
	if err != nil {
		return err
	}
	defer leave(m.room)
	waitedMore, err := enter(ctx, m.turn)
	if err != nil {
		return err
	}
	t := m.try(work, sync.OnceFunc(func() { leave(m.turn) }))
	defer t.endTurn()
	return m.until(ctx, t, waited || waitedMore)
}

// until makes rounds until the work is done or ctx ends.
func (m *Mutex) until(ctx context.Context, t *try, waited bool) error {
	waits := pace{clock: m.clock, jitter: m.jitter, longest: m.length / 6}
	if pause := m.stint.pause(m.clock.Elapsed(), waits.longest); pause > 0 {
		lease.Sleep(ctx, pause)
	}
	var holder error // that was seen last; ctx may end in a look that sees none
	if waited {
		holder = store.ErrHeld
	}
	for {
		held, err := t.round(ctx, m.drawn())
		if len(held) > 0 {
			holder = held[0]
			m.stint.end()
			lease.Sleep(ctx, waits.next(held))
		} else if t.began || ctx.Err() == nil {
			return err
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			return errors.Join(holder, err, cause)
		} else if cause != nil {
			return errors.Join(holder, err)
		}
	}
}

// TryDo does work if a slot is free, and returns store.ErrHeld otherwise.
func (m *Mutex) TryDo(ctx context.Context, work Work) error {
	select {
	case m.room <- struct{}{}:
		defer leave(m.room)
	default:
		return store.ErrHeld
	}
	t := m.try(work, func() {})
	held, err := t.round(ctx, m.drawn())
	if len(held) > 0 {
		return held[0]
	}
	return err
}

// drawn returns the slot that is tried first.
func (m *Mutex) drawn() int { return int(m.jitter.UpTo(time.Duration(len(m.slots) - 1))) }

// try returns a call that does work.
func (m *Mutex) try(work Work, endTurn func()) *try {
	return &try{slots: m.slots, clock: m.clock, stint: &m.stint, work: work, endTurn: endTurn}
}

// enter waits for room until ctx ends, and reports whether it had to wait.
func enter(ctx context.Context, room chan struct{}) (waited bool, err error) {
	select {
	case room <- struct{}{}:
		return false, nil
	default:
	}
	select {
	case room <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return true, errors.Join(store.ErrHeld, context.Cause(ctx))
	}
}

func leave(room chan struct{}) { <-room }

// A try is one call of Do or TryDo.
type try struct {
	slots   []*runner.Runner
	clock   *lease.Clock
	stint   *stint
	work    Work
	endTurn func() // lets another caller of this process look for a free slot; it may be called again
	began   bool   // the work has
	err     error  // of the work
}

// round tries each slot once, from the first on. It returns the holders if the work was not begun for
// them alone.
func (t *try) round(ctx context.Context, first int) (held []*runner.HeldError, err error) {
	for i := range t.slots {
		failed := t.take(ctx, t.slots[(first+i)%len(t.slots)])
		holder, is := errors.AsType[*runner.HeldError](failed)
		switch {
		case t.began || failed == nil:
			return nil, failed
		case is:
			held = append(held, holder)
		default:
			err = failed // another slot may be usable
		}
		if ctx.Err() != nil {
			break
		}
	}
	return held, err
}

// take does the work under one slot, unless another holds that. What became of the record is told
// as an event.
func (t *try) take(ctx context.Context, slot *runner.Runner) error {
	_, err := slot.Take(ctx, rand.Text(), t.do, nil)
	if t.began {
		return t.err
	}
	return err
}

// errNoReturn is of work that has ended its goroutine.
var errNoReturn = errors.New("the function did not return (runtime.Goexit)")

// do is what the run of the slot calls. A panic goes on to the run, which tells and records it.
func (t *try) do(ctx context.Context, h *supervise.Handle) error {
	t.endTurn()
	t.began, t.err = true, errNoReturn
	begin := t.clock.Elapsed()
	defer func() {
		t.stint.add(begin, t.clock.Elapsed())
		if p := recover(); p != nil {
			t.err = fmt.Errorf("panic: %v", p)
			panic(p)
		}
	}()
	t.err = t.work(ctx, h)
	// Work that goes on to its end without the lease may have been beside that of another.
	if lost := h.Leased(); lost != nil && !errors.Is(t.err, store.ErrLost) {
		t.err = errors.Join(lost, t.err)
	}
	return t.err
}
