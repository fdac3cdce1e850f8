package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// locked returns a lock of that name with the lease of these tests, as a replica sees it.
func (r *replica) locked(name string) *soloist.Lock {
	l := r.Lock(name)
	l.Lease = D
	return l
}

// guard returns the lock of these tests, as a replica sees it.
func (r *replica) guard() *soloist.Lock { return r.locked("guard") }

// pool returns the same lock with slots.
func (r *replica) pool(slots int) *soloist.Lock {
	l := r.guard()
	l.Slots = slots
	return l
}

// guardEntry is the entry of its first slot.
const guardEntry = "soloist/0-lock-guard"

// A doer is a method that takes a lock.
type doer = func(*soloist.Lock, context.Context, function) error

var doers = map[string]doer{"Do": (*soloist.Lock).Do, "TryDo": (*soloist.Lock).TryDo}

// meanwhile calls f in the background. The end of the test waits for it.
func (c *cluster) meanwhile(f func()) {
	var over sync.WaitGroup
	over.Go(f)
	c.t.Cleanup(over.Wait)
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

// held has a replica hold a lock for d in the background, and returns once it does.
func (c *cluster) held(r *replica, l *soloist.Lock, d time.Duration) (end <-chan error) {
	begun, done := make(chan struct{}), make(chan error, 1)
	c.meanwhile(func() {
		done <- l.Do(c.t.Context(), c.watch(r.Replica, func(ctx context.Context, _ *soloist.Run) error {
			close(begun)
			return pause(ctx, d)
		}))
	})
	<-begun
	return done
}

// One holder at a time, over replicas, over the goroutines of each and over two values of one lock,
// and each holder has a larger token than the one before.
func TestLockIsHeldByOneAtATime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all sync.WaitGroup
		for _, r := range c.replicas("a", "b", "c") {
			shared := r.guard()
			for i := range 4 {
				l := shared
				if i == 0 {
					l = r.guard()
				}
				all.Go(func() {
					for range 5 {
						c.ok(c.hold(c.t.Context(), r, l, time.Duration(i)*100*time.Millisecond))
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
	for _, slots := range []int{1, 2} {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			shared := a.pool(slots)
			var ends []<-chan error
			for range slots {
				ends = append(ends, c.held(a, shared, time.Minute))
			}
			for name, l := range map[string]*soloist.Lock{
				"another replica": b.pool(slots), "another value": a.pool(slots), "another goroutine": shared,
			} {
				begin := time.Now()
				err := l.TryDo(c.t.Context(), c.watch("b", nil))
				if took := time.Since(begin); !errors.Is(err, soloist.ErrHeld) || took > 0 {
					t.Errorf("%s: got %v after %s", name, err, took)
				}
			}
			for _, end := range ends {
				c.ok(<-end)
			}
			c.ok(b.pool(slots).TryDo(c.t.Context(), c.watch("b", nil)))
			c.wantRuns(slots + 1)
		})
	}
}

// What the function returns is what Do returns. A panic, and the end of the goroutine, are errors.
func TestLockReturnsErrorOfItsFunction(t *testing.T) {
	own := errors.New("out of paper")
	inCluster(t, func(c *cluster) {
		l := c.replica("a").guard()
		for name, do := range doers {
			with := func(f func() error) error {
				return do(l, c.t.Context(), func(context.Context, *soloist.Run) error { return f() })
			}
			if err := with(func() error { return own }); !errors.Is(err, own) || err.Error() != own.Error() {
				t.Errorf("%s: got %v, want %v", name, err, own)
			}
			c.ok(with(func() error { return nil }))
			wantError(t, with(func() error { return soloist.Skip("nothing new") }), "nothing new")
			wantError(t, with(func() error { panic("out of ink") }), "panic", "out of ink")
			wantError(t, with(func() error { runtime.Goexit(); return nil }), "Goexit")
		}
	})
}

// A lock inside itself would wait for itself, through whichever value. A lock of slots may, too.
func TestLockInsideItselfIsRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l, own := a.guard(), &soloist.Lock{Name: "guard", Store: a.tap, Logger: a.Logger}
		c.ok(l.Do(c.within(time.Hour), func(ctx context.Context, _ *soloist.Run) error {
			for _, again := range []*soloist.Lock{l, a.guard(), own, a.pool(2)} {
				for _, do := range doers {
					wantError(t, do(again, ctx, c.watch("a", nil)), "guard", "held by the caller already")
				}
			}
			return a.Lock("other").Do(ctx, func(ctx context.Context, _ *soloist.Run) error {
				wantError(t, l.Do(ctx, c.watch("a", nil)), "guard", "held by the caller already")
				return nil
			})
		}))
		c.wantRuns(0)
		c.ok(l.Do(c.t.Context(), c.watch("a", nil)))
	})
}

// The Run of a lock has what that of a job has: a checkpoint that the next holder loads, a call
// that asks for the lease, an ID of each holder's own, and a log with the name of the lock.
func TestLockHasRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ids := map[string]bool{}
		for i, name := range []string{"a", "b", "a"} {
			r := c.replica(name)
			c.ok(r.guard().Do(c.t.Context(), func(ctx context.Context, run *soloist.Run) error {
				ids[run.ID()] = true
				var n int
				err := errors.Join(run.Load(ctx, &n), run.Check(ctx), run.Save(ctx, n+1), run.Heartbeat("half way"))
				if n != i || run.Job != "guard" || run.Remaining() <= 0 || !run.Tick.IsZero() || run.Request != "" {
					t.Errorf("%s: loads %d, %+v", name, n, run)
				}
				run.Log.Info("inside")
				return err
			}))
			r.wantLines(1, "inside", "lock=guard", fmt.Sprint("replica=", name), "token=")
		}
		if len(ids) != 3 {
			t.Errorf("ids %v", ids)
		}
	})
}

// Slots that are made in the same second have the same tokens, and their holders are told apart.
func TestLockIDOfEachHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all sync.WaitGroup
		for _, r := range c.replicas("a", "b", "c", "d") {
			all.Go(func() { c.ok(c.hold(c.t.Context(), r, r.pool(4), time.Minute)) })
		}
		all.Wait()
		ids, tokens := map[string]bool{}, map[int64]bool{}
		for _, r := range c.all() {
			ids[r.ID()], tokens[r.Token] = true, true
		}
		if len(ids) != 4 || len(tokens) == 4 {
			t.Errorf("IDs %v, tokens %v", ids, tokens)
		}
	})
}

// A store that refuses the lock for good is an error, not a wait.
func TestLockWithoutPermission(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		a.tap.deny = guardEntry
		wantError(t, a.guard().Do(c.within(time.Minute), c.watch("a", nil)), "permission")
		c.wantRuns(0)
	})
}

// Bad input is an error that says which field, which value and what is allowed, from Validate and at
// once from each method.
func TestLockRefusesBadInput(t *testing.T) {
	for name, tt := range map[string]struct {
		lock *soloist.Lock
		want []string
	}{
		"no name": {&soloist.Lock{}, []string{"Name", `""`, "empty"}},
		"too much": {&soloist.Lock{Name: strings.Repeat("Ü", 257), Slots: 101, Lease: time.Hour},
			[]string{"Name", "ÜÜ", "514", "512", "101", "1h0m0s", "1m0s"}},
		"what is no value": {&soloist.Lock{Name: "a\x00b", Slots: -1, Lease: 30, App: "My App"},
			[]string{`"a\x00b"`, "printable", "Slots", "-1", "1 to 100", "time.Second", "App", "My App", "lower-case"}},
		"a long replica": {&soloist.Lock{Name: "guard", Replica: strings.Repeat("r", 300)}, []string{"guard", "Replica"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, (&soloist.Lock{Name: "guard"}).Validate(), "guard", "Store", "nil")
			tt.lock.Store = &local.Memory{}
			wantError(t, tt.lock.Validate(), tt.want...)
			for _, do := range doers {
				wantError(t, do(tt.lock, t.Context(), taking(0)), tt.want...)
				wantError(t, do(&soloist.Lock{Store: tt.lock.Store, Name: "guard"}, t.Context(), nil), "guard", "function", "nil")
			}
		})
	}
}

// A lock needs no scheduler, and its zero values work. Fields that change after the first call have no effect.
func TestLockWithoutScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := &soloist.Lock{Name: "guard", Store: c.store}
		c.ok(l.Validate())
		for range 3 {
			c.ok(l.Do(c.t.Context(), c.watch("a", nil)))
			l.Slots, l.Lease = -1, 7
		}
		c.wantRuns(3)
		disjoint(t, c.all())
		run := c.record("0-lock-guard").Run
		if run.Lease != store.Seconds(30*time.Second) || !strings.HasPrefix(run.Replica, "replica-") {
			t.Errorf("got %+v", run)
		}
	})
}

// The lock that a run has, and that the run of a lock has, is that of the scheduler, and its replica's.
func TestLockOfRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var nested int64
		job := doing("@every 1h", func(ctx context.Context, run *soloist.Run) error {
			return run.Lock("outer").TryDo(ctx, func(ctx context.Context, held *soloist.Run) error {
				return held.Lock("inner").Do(ctx, func(_ context.Context, inner *soloist.Run) error {
					nested = inner.Token
					return nil
				})
			})
		})
		a, b := c.replica("a", job), c.replica("b", job)
		if outcome, err := a.RunNow(c.t.Context(), "work", "free"); err != nil || outcome.Status != store.Succeeded {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		outer, inner := c.record("0-lock-outer"), c.record("0-lock-inner")
		if outer.Run.Replica != "a" || inner.Run.Replica != "a" || inner.Token != nested || nested == 0 {
			t.Errorf("got the token %d, and the records %+v and %+v", nested, outer, inner)
		}
		c.ok(b.Lock("outer").Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			outcome, err := a.RunNow(ctx, "work", "held")
			if err != nil || outcome.Status != store.Failed || !strings.Contains(outcome.Reason, soloist.ErrHeld.Error()) {
				t.Errorf("got %+v, %v", outcome, err)
			}
			return nil
		}))
		wantError(t, new(soloist.Run).Lock("outer").Do(t.Context(), taking(0)), `lock "outer": Store is nil`)
	})
}

// As many callers as there are slots hold the lock, and no more. Under replicas with different numbers
// the largest counts, whichever of them comes first, and each replica keeps to its own.
func TestSlotsLimitHolders(t *testing.T) {
	for name, slots := range map[string]map[string]int{
		"equal":             {"a": 3, "b": 3, "c": 3},
		"one has more":      {"a": 2, "b": 2, "c": 5},
		"one has fewer":     {"a": 4, "b": 4, "c": 1},
		"the most possible": {"a": 100},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var all sync.WaitGroup
			for name, n := range slots {
				r := c.replica(name)
				l := r.pool(n)
				for range 2 * n {
					all.Go(func() {
						for range 3 {
							c.ok(c.hold(t.Context(), r, l, 10*time.Second))
						}
					})
				}
			}
			all.Wait()
			if n, largest := atOnce(c.all()), slices.Max(slices.Collect(maps.Values(slots))); n != largest {
				t.Errorf("%d hold it at once, want %d", n, largest)
			}
			for name, n := range slots {
				if got := atOnce(ranBy(c, name, time.Time{})); got > n {
					t.Errorf("%s holds it %d times at once, and has %d slots", name, got, n)
				}
			}
		})
	}
}

// A lease whose release got no answer has no holder: TryDo of that process waits for its end.
func TestTryDoAfterReleaseWithoutAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.guard()
		c.ok(l.Do(c.t.Context(), taking(0)))
		a.tap.meet(func(op string, apply func() error) error {
			if op == "release" {
				return errNetwork
			}
			return apply()
		})
		for range 2 {
			c.ok(l.TryDo(c.t.Context(), taking(0)))
		}
	})
}

// A call whose outcome could not be written has returned: TryDo of that process waits for the end of its lease.
func TestTryDoAfterUnwrittenOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.guard()
		ctx, cancel := context.WithCancel(c.t.Context())
		c.ok(l.Do(ctx, func(context.Context, *soloist.Run) error {
			a.tap.meet(func(op string, apply func() error) error {
				if op == "write" {
					return errNetwork
				}
				return apply()
			})
			time.AfterFunc(7*time.Second, cancel)
			return nil
		}))
		a.tap.meet(nil)
		c.ok(l.TryDo(c.within(time.Minute), taking(0)))
	})
}
