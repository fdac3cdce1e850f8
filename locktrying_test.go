package soloist_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The store does not answer, and a call of the same process waits for it. So nothing is known to be held.
func TestTryDoBesideCallThatTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l, s := c.north("a", 1)
		begun := make(chan string, 3)
		work := func(name string) func(context.Context, *soloist.Run) error {
			return func(context.Context, *soloist.Run) error { begun <- name; return nil }
		}
		s.meet(func(string, func() error) error { return errNetwork })
		first := make(chan error)
		go func() { first <- l.Do(c.t.Context(), work("first")) }()
		time.Sleep(time.Minute)
		for name, do := range map[string]func(*soloist.Lock, context.Context, func(context.Context, *soloist.Run) error) error{
			"Do": (*soloist.Lock).Do, "TryDo": (*soloist.Lock).TryDo} {
			err := do(l, c.within(time.Minute), work(name))
			if errors.Is(err, store.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v, want the end of the context and not that it is held", name, err)
			}
		}
		again := make(chan error)
		go func() { again <- l.TryDo(c.t.Context(), work("second")) }()
		time.Sleep(time.Minute)
		s.meet(nil)
		if err := <-first; err != nil {
			t.Error("first:", err)
		}
		if err := <-again; err != nil && !errors.Is(err, store.ErrHeld) {
			t.Error("second:", err)
		}
	})
}

// A caller that waits behind another one of its process has no holder to name, if there is none.
func TestDoBehindCallThatTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l, s := c.north("a", 1)
		s.meet(func(string, func() error) error { return errNetwork })
		go l.Do(c.within(time.Hour), func(context.Context, *soloist.Run) error { return nil })
		time.Sleep(time.Minute)
		err := l.Do(c.within(time.Minute), func(context.Context, *soloist.Run) error { return nil })
		wantError(t, err, "another call of this process still tries", "deadline")
		time.Sleep(time.Hour)
	})
}

// The first holder of a lock has its lease while it waits for the token of its claim.
func TestTryDoUnderLeaseWithoutClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		first, _ := c.north("a", 1)
		go first.Do(c.t.Context(), func(context.Context, *soloist.Run) error { return nil })
		time.Sleep(time.Millisecond)
		for _, replica := range []string{"a", "b"} {
			l, _ := c.north(replica, 1)
			err := l.TryDo(c.t.Context(), func(context.Context, *soloist.Run) error { return nil })
			if !errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), "leased, not claimed yet") {
				t.Errorf("%s: got %v", replica, err)
			}
		}
		time.Sleep(time.Minute)
	})
}

// Between the look of TryDo and its acquisition another replica has the lock for a moment: it is free again.
func TestTryDoAfterBriefHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		nothing := func(context.Context, *soloist.Run) error { return nil }
		brief := func() {
			b, _ := c.north("b", 1)
			if err := b.Do(c.t.Context(), nothing); err != nil {
				t.Error(err)
			}
		}
		brief()
		l, s := c.north("a", 1)
		s.meet(before("acquire", sync.OnceFunc(brief)))
		begin := time.Now()
		if err := l.TryDo(c.t.Context(), nothing); err != nil || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("got %v after %s, want the lock", err, time.Since(begin))
		}
	})
}

// Who acquires the lock of a holder that has died has claimed nothing by then: TryDo does not name the dead one.
func TestTryDoNamesNoDeadHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		dead, lost := c.north("dead", 1)
		go dead.Do(c.within(time.Hour), func(ctx context.Context, _ *soloist.Run) error {
			lost.meet(fail(errNetwork))
			return pause(ctx, time.Hour)
		})
		time.Sleep(2 * D)
		l, s := c.north("a", 1)
		s.meet(before("acquire", func() {
			e, err := c.store.Read(c.t.Context(), northern)
			if err == nil {
				_, err = c.store.Lease(northern, "00000000-0000-4000-8000-000000000000").Acquire(c.t.Context(), D, e.ETag)
			}
			if err != nil {
				t.Error(err)
			}
		}))
		err := l.TryDo(c.t.Context(), func(context.Context, *soloist.Run) error { return nil })
		wantError(t, err, store.ErrHeld.Error(), "leased, not claimed yet")
		time.Sleep(2 * time.Hour)
	})
}
