// Package mutex lets any code run under a lease of its own: one caller of all replicas at a time, or
// as many as there are slots. Each slot has an entry as a job has one, and a caller takes it by the
// acquisition, the record and the token of a run by hand: see runner.Runner.Take. What is new here is
// only how a caller waits for its turn.
package mutex

import (
	"context"
	"crypto/rand"
	"errors"
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
	if err := enter(ctx, m.room); err != nil {
		return err
	}
	defer leave(m.room)
	if err := enter(ctx, m.turn); err != nil {
		return err
	}
	t := &try{slots: m.slots, work: work, endTurn: sync.OnceFunc(func() { leave(m.turn) })}
	defer t.endTurn()
	waits := pace{clock: m.clock, jitter: m.jitter, longest: m.length / 6}
	for {
		held, err := t.round(ctx, m.drawn())
		if len(held) == 0 {
			return err
		}
		lease.Sleep(ctx, waits.next(held))
		if ctx.Err() != nil {
			return errors.Join(held[0], context.Cause(ctx))
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
	t := &try{slots: m.slots, work: work, endTurn: func() {}}
	held, err := t.round(ctx, m.drawn())
	if len(held) > 0 {
		return held[0]
	}
	return err
}

// drawn returns the slot that is tried first.
func (m *Mutex) drawn() int { return int(m.jitter.UpTo(time.Duration(len(m.slots) - 1))) }

// enter waits for room until ctx ends.
func enter(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errors.Join(store.ErrHeld, context.Cause(ctx))
	}
}

func leave(room chan struct{}) { <-room }

// A try is one call of Do or TryDo.
type try struct {
	slots   []*runner.Runner
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
		case t.began || failed == nil || ctx.Err() != nil:
			return nil, failed
		case is:
			held = append(held, holder)
		default:
			err = failed // another slot may be usable
		}
	}
	return held, err
}

// take does the work under one slot, unless another holds that.
func (t *try) take(ctx context.Context, slot *runner.Runner) error {
	outcome, err := slot.Take(ctx, rand.Text(), t.do, nil)
	switch {
	case !t.began:
		return err
	case t.err != nil:
		return t.err
	case err == nil && outcome.Status != store.Succeeded: // it panicked
		return errors.New(outcome.Reason)
	}
	return nil // what became of the record is told as an event
}

// do is what the run of the slot calls.
func (t *try) do(ctx context.Context, h *supervise.Handle) error {
	t.endTurn()
	t.began = true
	t.err = t.work(ctx, h)
	// Work that goes on to its end without the lease may have been beside that of another.
	if cause := context.Cause(ctx); t.err == nil && errors.Is(cause, store.ErrLost) {
		t.err = cause
	}
	return t.err
}
