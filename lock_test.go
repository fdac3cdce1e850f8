package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// guard returns the lock of these tests, as a replica sees it.
func (r *replica) guard() *soloist.Lock {
	l := r.Lock("guard")
	l.Lease = D
	return l
}

// hold holds a lock for d, or until the context of its function ends. The test sees it as a run of
// that replica.
func (c *cluster) hold(ctx context.Context, r *replica, l *soloist.Lock, d time.Duration) error {
	return l.Do(ctx, c.watch(r.Replica, func(ctx context.Context, _ *soloist.Run) error {
		if pause(ctx, d) != nil {
			return context.Cause(ctx)
		}
		return nil
	}))
}

// held has a replica hold a lock for d in the background, and returns once it does. The end of the
// test waits for it.
func (c *cluster) held(r *replica, l *soloist.Lock, d time.Duration) (end <-chan error) {
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.Do(c.t.Context(), c.watch(r.Replica, func(ctx context.Context, _ *soloist.Run) error {
			close(begun)
			return pause(ctx, d)
		}))
	}()
	<-begun
	return done
}

// One holder at a time, over replicas, over the goroutines of each and over two values of one lock,
// and each holder has a larger token than the one before.
func TestLockIsHeldByOneAtATime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			r := c.replica(name)
			shared := r.guard()
			for i := range 4 {
				l := shared
				if i == 0 {
					l = r.guard()
				}
				all.Go(func() {
					for range 5 {
						if err := c.hold(c.t.Context(), r, l, time.Duration(i)*100*time.Millisecond); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		c.wantRuns(60)
		disjoint(t, c.all())
	})
}

func TestTryDoIsRefusedAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		shared := a.guard()
		end := c.held(a, shared, time.Minute)
		for name, l := range map[string]*soloist.Lock{"another replica": b.guard(), "another value": a.guard(), "another goroutine": shared} {
			begin := time.Now()
			err := l.TryDo(c.t.Context(), c.watch("b", nil))
			if took := time.Since(begin); !errors.Is(err, soloist.ErrHeld) || took > 0 {
				t.Errorf("%s: got %v after %s", name, err, took)
			}
		}
		if err := <-end; err != nil {
			t.Error(err)
		}
		if err := b.guard().TryDo(c.t.Context(), c.watch("b", nil)); err != nil {
			t.Errorf("of a free lock: %v", err)
		}
		c.wantRuns(2)
	})
}

// What the function returns is what Do returns. A panic, and the end of the goroutine, are errors.
func TestLockReturnsErrorOfItsFunction(t *testing.T) {
	own := errors.New("out of paper")
	inCluster(t, func(c *cluster) {
		l := c.replica("a").guard()
		for name, do := range map[string]func(*soloist.Lock, context.Context, func(context.Context, *soloist.Run) error) error{
			"Do": (*soloist.Lock).Do, "TryDo": (*soloist.Lock).TryDo} {
			with := func(err error) error {
				return do(l, c.t.Context(), func(context.Context, *soloist.Run) error { return err })
			}
			if err := with(own); !errors.Is(err, own) || err.Error() != own.Error() {
				t.Errorf("%s: got %v, want %v", name, err, own)
			}
			if err := with(nil); err != nil {
				t.Errorf("%s: got %v", name, err)
			}
			if err := with(soloist.Skip("nothing new")); err == nil {
				t.Errorf("%s: an error of the function is lost", name)
			}
			err := do(l, c.t.Context(), func(context.Context, *soloist.Run) error { panic("out of ink") })
			wantError(t, err, "panic", "out of ink")
			err = do(l, c.t.Context(), func(context.Context, *soloist.Run) error { runtime.Goexit(); return nil })
			wantError(t, err, "Goexit")
		}
	})
}

// A lock inside itself would wait for itself, through whichever value.
func TestLockInsideItselfIsRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l, own := a.guard(), &soloist.Lock{Name: "guard", Store: a.tap, Logger: a.Logger}
		err := l.Do(c.within(time.Hour), func(ctx context.Context, _ *soloist.Run) error {
			for _, again := range []*soloist.Lock{l, a.guard(), own} {
				wantError(t, again.Do(ctx, c.watch("a", nil)), "guard", "held by the caller already")
				wantError(t, again.TryDo(ctx, c.watch("a", nil)), "guard", "held by the caller already")
			}
			return a.Lock("other").Do(ctx, func(ctx context.Context, _ *soloist.Run) error {
				wantError(t, l.Do(ctx, c.watch("a", nil)), "guard", "held by the caller already")
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		c.wantRuns(0)
		if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
			t.Error("afterwards:", err)
		}
	})
}

// The Run of a lock has what that of a job has: a checkpoint that the next holder loads, a call
// that asks for the lease, an ID of each holder's own, and a log with the name of the lock.
func TestLockHasRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ids := map[string]bool{}
		for i, name := range []string{"a", "b", "a"} {
			r := c.replica(name)
			err := r.guard().Do(c.t.Context(), func(ctx context.Context, run *soloist.Run) error {
				ids[run.ID()] = true
				var n int
				err := errors.Join(run.Load(ctx, &n), run.Check(ctx), run.Save(ctx, n+1), run.Heartbeat("half way"))
				if n != i || run.Job != "guard" || run.Remaining() <= 0 || !run.Tick.IsZero() || run.Request != "" {
					t.Errorf("%s: loads %d, %+v", name, n, run)
				}
				run.Log.Info("inside")
				return err
			})
			if err != nil {
				t.Error(err)
			}
			r.wantLines(1, "inside", "lock=guard", fmt.Sprint("replica=", name), "token=")
		}
		if len(ids) != 3 {
			t.Errorf("ids %v", ids)
		}
	})
}

// Names are data: they need no care, and no two of them are one lock.
func TestLockNamesAreData(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		names := []string{"tenant-42", "Tenant-42", "tenant/42", "tenant 42", "Kunde/Müller", "-", "--", "0", "日本"}
		var ends []<-chan error
		for _, name := range names {
			ends = append(ends, c.held(a, a.Lock(name), time.Hour))
		}
		for _, name := range names {
			if err := c.replica("b").Lock(name).TryDo(c.t.Context(), c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := c.replica("b").Lock("tenant-43").TryDo(c.t.Context(), c.watch("b", nil)); err != nil {
			t.Error("another name:", err)
		}
		for i, end := range ends {
			if err := <-end; err != nil {
				t.Errorf("%s: %v", names[i], err)
			}
		}
		c.wantRuns(len(names) + 1)
	})
}

// A store that refuses the lock for good is an error, not a wait.
func TestLockWithoutPermission(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		a.tap.deny = "soloist/0-lock-guard"
		begin := time.Now()
		ctx := c.within(time.Minute)
		err := a.guard().Do(ctx, c.watch("a", nil))
		if took := time.Since(begin); err == nil {
			t.Errorf("got %v after %s", err, took)
		} else if !strings.Contains(err.Error(), "permission") {
			t.Error(err)
		}
		c.wantRuns(0)
	})
}
