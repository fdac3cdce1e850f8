package mutex

import (
	"cmp"
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
	*shared

	work    Work
	endTurn func()                   // lets another caller of this process look for a free slot; it may be called again
	brief   bool                     // a failure of the store is not waited out: with several slots perhaps only one entry fails
	late    func(time.Duration) bool // reports whether the caller's time to wait has been over for so long

	trouble error // why a slot could not be used last
	began   bool  // the work has
	err     error // of the work
}

// round tries each slot once, from the first on, until the work has begun. It returns the holders of
// the others, and why a slot could not be used. It goes on for the length of a lease after the caller's time.
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
		if ctx.Err() != nil || t.late(t.length) {
			break
		}
	}
	return held, t.told(ctx, err)
}

// told returns why a slot could not be used, if that is known: a call that ctx ends under way says nothing, so
// then it is what the one before it has met.
func (t *try) told(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return cmp.Or(t.trouble, err)
	}
	t.trouble = err
	return err
}

// take does the work under one slot, unless another holds that. What became of the record is reported as
// an event.
func (t *try) take(ctx context.Context, slot int) error {
	_, err := runner.Take(ctx, t.slots[slot], rand.Text(), func(ctx context.Context, h *supervise.Handle) error {
		return t.do(ctx, slot, h)
	}, runner.Terms{Brief: t.brief})
	if t.began {
		return t.err
	}
	return err
}

// errNoReturn is the error of work that has ended its goroutine.
var errNoReturn = errors.New("the function did not return (runtime.Goexit)")

// do is what the run of the slot calls. A panic goes on to the run, which reports and records it.
func (t *try) do(ctx context.Context, slot int, h *supervise.Handle) error {
	defer t.seen.begin()()
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
	t.err = t.work(ctx, slot, h)
	// Work that goes on to its end without the lease may have overlapped another's.
	if lost := h.Leased(); lost != nil && !errors.Is(t.err, store.ErrLost) {
		t.err = errors.Join(lost, t.err)
	}
	return t.err
}
