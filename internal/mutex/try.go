package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Work is what is done under the lease of a slot.
type Work func(ctx context.Context, slot int, h *supervise.Handle) error

// A try is one call of Do or TryDo.
type try struct {
	slots   []*runner.Runner
	work    Work
	endTurn func()        // lets another caller of this process look for a free slot; it may be called again
	bound   time.Duration // for how long one slot is tried where there are others: its entry may be the only one that fails
	elapsed func() time.Duration
	hold    func(from, to time.Duration) // notes for how long a slot was held

	began bool  // the work has
	err   error // of the work
}

// round tries each slot once, from the first on, until the work has begun. It returns the holders of
// the others, and why a slot could not be used.
func (t *try) round(ctx context.Context, first int) (held []*runner.HeldError, err error) {
	for i := range t.slots {
		failed := t.take(ctx, (first+i)%len(t.slots))
		if t.began {
			return nil, failed
		}
		if holder, is := errors.AsType[*runner.HeldError](failed); is {
			held = append(held, holder)
		} else {
			err = failed // another slot may be usable
		}
		if ctx.Err() != nil {
			break
		}
	}
	return held, err
}

// take does the work under one slot, unless another holds that. What became of the record is told as
// an event.
func (t *try) take(ctx context.Context, slot int) error {
	begins := func() bool { return true }
	if len(t.slots) > 1 {
		var undo func()
		ctx, begins, undo = within(ctx, t.bound)
		defer undo()
	}
	_, err := t.slots[slot].Take(ctx, rand.Text(), func(ctx context.Context, h *supervise.Handle) error {
		if !begins() {
			return context.Cause(ctx)
		}
		return t.do(ctx, slot, h)
	}, nil)
	if t.began {
		return t.err
	}
	return err
}

// within returns a context that ends after d, unless begins is called before. Begins returns false if
// the context has ended.
func within(ctx context.Context, d time.Duration) (bound context.Context, begins func() bool, undo func()) {
	bound, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(d, cancel)
	return bound, timer.Stop, func() {
		timer.Stop()
		cancel()
	}
}

// errNoReturn is the error of work that has ended its goroutine.
var errNoReturn = errors.New("the function did not return (runtime.Goexit)")

// do is what the run of the slot calls. A panic goes on to the run, which tells and records it.
func (t *try) do(ctx context.Context, slot int, h *supervise.Handle) error {
	t.endTurn()
	t.began, t.err = true, errNoReturn
	begin := t.elapsed()
	defer func() {
		t.hold(begin, t.elapsed())
		if p := recover(); p != nil {
			t.err = fmt.Errorf("panic: %v", p)
			panic(p)
		}
	}()
	t.err = t.work(ctx, slot, h)
	// Work that goes on to its end without the lease may have been beside that of another.
	if lost := h.Leased(); lost != nil && !errors.Is(t.err, store.ErrLost) {
		t.err = errors.Join(lost, t.err)
	}
	return t.err
}
