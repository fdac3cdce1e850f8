package mutex_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/mutex"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A hanging store answers no read.
type hanging struct{ store.Store }

func (hanging) Read(ctx context.Context, _ string) (store.Entry, error) {
	<-ctx.Done()
	return store.Entry{}, ctx.Err()
}

// newMutex returns a lock of one slot over a store that answers nothing.
func newMutex() *mutex.Mutex {
	r := &runner.Replica{App: "app", Name: "a", Store: hanging{}, Clock: &lease.Clock{Wall: time.Now, Elapsed: elapsed.Now},
		Events: func(event.Event) {}, Flush: func(time.Duration) {}}
	slot := runner.New(r, &runner.Job{Name: "slot", Policy: plan.Policy{Lease: 30 * time.Second}})
	return mutex.New(r, []*runner.Runner{slot}, 30*time.Second)
}

// Work that was not begun is an error, whichever of the patience and the context ends first, also within
// one call to the store.
func TestWorkThatWasNotBegunIsAnError(t *testing.T) {
	for _, patience := range []time.Duration{time.Second, 3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := newMutex().DoWithin(ctx, patience, func(context.Context, int, *supervise.Handle) error { return nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("patience %s: got %v, want the cause of the end", patience, err)
			}
		})
	}
}
