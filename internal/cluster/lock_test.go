package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

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

// Stores that wrap another one, by value: a mapStore cannot be compared, and so cannot a wrapStore around it.
type (
	wrapStore struct{ store.Store }
	mapStore  struct {
		store.Store
		calls map[string]int
	}
)

// A lock is known inside itself whatever kind of store it has, and one over another store is another lock.
func TestLockIsKnownInsideItself(t *testing.T) {
	one, other := &local.Memory{}, &local.Memory{}
	for name, tt := range map[string]struct {
		a, b store.Store
		same bool
	}{
		"one":                   {one, one, true},
		"another":               {one, other, false},
		"wrapped":               {wrapStore{one}, wrapStore{one}, true},
		"mapped":                {mapStore{one, map[string]int{}}, mapStore{other, nil}, true},
		"wrapped around mapped": {wrapStore{mapStore{one, nil}}, mapStore{one, nil}, true},
		"mapped and not":        {mapStore{one, nil}, one, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &soloist.Lock{Name: "guard", Store: tt.a, Logger: slog.New(slog.DiscardHandler)}, &soloist.Lock{Name: "guard", Store: tt.b}
			var again error
			err := a.Do(t.Context(), func(ctx context.Context, _ *soloist.Run) error {
				again = b.TryDo(ctx, func(context.Context, *soloist.Run) error { return nil })
				return nil
			})
			if same := again != nil && strings.Contains(again.Error(), "held by the caller already"); err != nil || same != tt.same {
				t.Errorf("%s: the same lock: %t (%v); %v", name, same, again, err)
			}
		})
	}
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
	long, memory := strings.Repeat("x", 300), &local.Memory{}
	for name, tt := range map[string]struct {
		lock *soloist.Lock
		once *soloist.Once
		want []string
	}{
		"no name": {lock: &soloist.Lock{Store: memory}, want: []string{"Name", `""`, "empty"}},
		"too much": {lock: &soloist.Lock{Store: memory, Name: strings.Repeat("Ü", 257), Slots: 101, Lease: time.Hour},
			want: []string{"Name", "ÜÜ", "514", "512", "101", "1h0m0s", "1m0s"}},
		"what is no value": {lock: &soloist.Lock{Store: memory, Name: "a\x00b", Slots: -1, Lease: 30, App: "My App"},
			want: []string{`"a\x00b"`, "printable", "Slots", "-1", "1 to 100", "time.Second", "App", "My App", "lower-case"}},
		"a long replica": {lock: &soloist.Lock{Store: memory, Name: "guard", Replica: long}, want: []string{"guard", "Replica"}},
		"no store":       {lock: &soloist.Lock{Name: "guard"}, want: []string{"guard", "Store", "nil"}},
		"nothing": {once: &soloist.Once{},
			want: []string{`Name is ""`, "empty", `Key is ""`, "1 to 200", "Do is nil", "Store is nil"}},
		"too much for Once": {once: &soloist.Once{Name: long[:33], Key: long,
			Retry: soloist.Retry{MaxTries: math.MaxInt, PauseAfter: 3}},
			want: []string{"33", "32", "300", "200", "Retry.MaxTries", "0 to 20", "Retry.PauseAfter is 3", "zero"}},
		"no value for Once": {once: &soloist.Once{Name: "migrate", Key: "v1\x00", Store: memory, App: "A/B", Lease: 30,
			Retry: soloist.Retry{MaxTries: -1, Backoff: 10}},
			want: []string{`v1\x00`, "printable", "A/B", "Lease is", "30", "Retry.Backoff is", "time.Second", "Retry.MaxTries is -1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.once != nil {
				wantError(t, tt.once.Validate(), tt.want...)
				wantError(t, tt.once.Run(t.Context()), tt.want...)
				return
			}
			wantError(t, tt.lock.Validate(), tt.want...)
			for _, do := range doers {
				wantError(t, do(tt.lock, t.Context(), taking(0)), tt.want...)
				wantError(t, do(&soloist.Lock{Store: memory, Name: "guard"}, t.Context(), nil), "guard", "function", "nil")
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
		if run.Lease != record.Seconds(30*time.Second) || !strings.HasPrefix(run.Replica, "replica-") {
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
		if outcome, err := a.RunNow(c.t.Context(), "work", "free"); err != nil || outcome.Status != event.Succeeded {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		outer, inner := c.record("0-lock-outer"), c.record("0-lock-inner")
		if outer.Run.Replica != "a" || inner.Run.Replica != "a" || inner.Token != nested || nested == 0 {
			t.Errorf("got the token %d, and the records %+v and %+v", nested, outer, inner)
		}
		c.ok(b.Lock("outer").Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			outcome, err := a.RunNow(ctx, "work", "held")
			if err != nil || outcome.Status != event.Failed || !strings.Contains(outcome.Reason, soloist.ErrHeld.Error()) {
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

// TryDo has a lock that nobody holds: at once if another replica had it for a moment between its look and its acquisition, and
// else once its lease has expired. Until then it does not say that the lock is held.
func TestTryDoOfALockThatNobodyHolds(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(c *cluster, a *replica, l *soloist.Lock)
		most   time.Duration
	}{
		"its release got no answer": {func(c *cluster, a *replica, l *soloist.Lock) {
			c.ok(l.Do(c.t.Context(), taking(0)))
			a.meets(fail(errNetwork, "release"))
			c.ok(l.TryDo(c.t.Context(), taking(0)))
		}, D + D/6},
		"its outcome could not be written": {func(c *cluster, a *replica, l *soloist.Lock) {
			ctx, cancel := context.WithCancel(c.t.Context())
			c.ok(l.Do(ctx, func(context.Context, *soloist.Run) error {
				a.meets(fail(errNetwork, "write"))
				time.AfterFunc(7*time.Second, cancel)
				return nil
			}))
			a.meets(nil)
		}, D + D/6},
		"its call ended in a hold-off": {func(c *cluster, _ *replica, l *soloist.Lock) {
			c.deadHolder()
			c.breakGuard()
			wantError(c.t, l.TryDo(c.within(5*time.Second), taking(0)), "did not expire by itself")
			err := l.TryDo(c.within(time.Second), taking(0))
			if wantError(c.t, err, "has yet to expire"); errors.Is(err, store.ErrHeld) {
				c.t.Errorf("under the lease of the first call: %v", err)
			}
		}, D + D/6},
		"another had it for a moment": {func(c *cluster, a *replica, _ *soloist.Lock) {
			brief := func() { c.ok(c.replica("b").guard().Do(c.t.Context(), taking(0))) }
			brief()
			a.meets(before("acquire", sync.OnceFunc(brief)))
		}, 100 * time.Millisecond},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a")
			l := a.guard()
			tt.before(c, a, l)
			begin := time.Now()
			if err := l.TryDo(c.within(time.Minute), taking(0)); err != nil || time.Since(begin) > tt.most {
				t.Errorf("got %v after %s, want the lock", err, time.Since(begin))
			}
		})
	}
}

// The longer a lock was held, the longer it may take until a caller sees that it is free: after a second no longer than
// a fifth of one, and never longer than a sixth of the lease and a little. Wrong wall clocks change neither that nor who
// holds the lock; without dates of the store one that is wrong makes a caller look as late as after a long hold.
func TestLockIsHandedOverPromptly(t *testing.T) {
	right, wrong := make([]time.Duration, 4), []time.Duration{0, time.Hour, -time.Hour, 4 * time.Second}
	for name, tt := range map[string]struct {
		lease, held time.Duration
		skews       []time.Duration
		date        func(time.Time) time.Time
		most        time.Duration
	}{
		"not held":                           {D, 0, right, nil, 200 * time.Millisecond},
		"for a second":                       {D, time.Second, right, nil, 200 * time.Millisecond},
		"for minutes":                        {D, 10*time.Minute + 2*time.Second, right, nil, 2600 * time.Millisecond},
		"the longest lease for minutes":      {time.Minute, 80 * time.Second, right, nil, 10 * time.Second},
		"wrong clocks and dates of a second": {D, time.Second, wrong, wholeSeconds, 200 * time.Millisecond},
		"wrong clocks without dates":         {D, time.Second, wrong, noDate, D / 6},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var all sync.WaitGroup
			for i, skew := range tt.skews {
				r := c.replica(fmt.Sprint("r", i)).skewed(skew)
				r.tap.date = tt.date
				l := r.guard()
				l.Lease = tt.lease
				all.Go(func() {
					for range 3 {
						c.ok(c.hold(t.Context(), r, l, tt.held))
					}
				})
			}
			all.Wait()
			c.wantRuns(12)
			disjoint(t, c.all())
			for i, r := range c.all()[1:] {
				if took := r.start.Sub(c.all()[i].end); took > tt.most {
					t.Errorf("holder %d begins %s after the end of the one before, want at most %s", i+2, took, tt.most)
				}
			}
		})
	}
}

// A caller that waits for an hour costs few calls: a look at most each twelfth of the lease once the
// lock has been held for long. Its looks before that are geometric: some 60.
func TestWaitingForLockCostsFewCalls(t *testing.T) {
	for _, lease := range []time.Duration{D, 30 * time.Second, time.Minute} {
		inCase(t, lease.String(), func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			first, shared := a.guard(), b.guard()
			first.Lease, shared.Lease = lease, lease
			end := c.held(a, first, time.Hour)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if err := shared.Do(c.within(59*time.Minute+50*time.Second), c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			n, most := b.tap.counts(), 60+int(time.Hour/(lease/12))
			if n["read"] > most || n["read"] < 100 || len(n) > 2 || n["create"] > 1 {
				t.Errorf("%v, want at most %d reads", n, most)
			}
			c.ok(<-end)
		})
	}
}

// While a caller waits, the end of its context is ErrHeld with the cause; a call that is under way
// at that instant, or fails then, makes no difference.
func TestContextEndsWhileWaiting(t *testing.T) {
	for name, meets := range map[string]fault{
		"between two looks":    nil,
		"in a look":            slow(2*time.Second, "read"),
		"in a look that fails": func(string, func() error) error { time.Sleep(10 * time.Second); return errNetwork },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			end := c.held(a, a.guard(), 10*time.Minute)
			time.AfterFunc(55*time.Second, func() { b.meets(meets) })
			shared, why := b.guard(), errors.New("closing time")
			for i := range 3 { // one looks, the others wait for their turn, and end in their first look
				ctx, cancel := context.WithTimeoutCause(c.t.Context(), time.Minute+time.Duration(i)*time.Second, why)
				defer cancel()
				go func() {
					if err := shared.Do(ctx, c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) || !errors.Is(err, why) {
						t.Errorf("got %v", err)
					}
				}()
			}
			c.ok(<-end)
			c.wantRuns(1)
		})
	}
}

// wantBegun calls Do a hundred times, each for at most d, and checks that nearly all call the function.
func (c *cluster) wantBegun(l *soloist.Lock, d time.Duration) {
	c.t.Helper()
	begun := 0
	for range 100 {
		ctx, cancel := context.WithTimeout(c.t.Context(), d)
		_ = l.Do(ctx, func(context.Context, *soloist.Run) error { begun++; return nil })
		cancel()
	}
	if begun < 95 {
		c.t.Errorf("%d of 100 calls were begun", begun)
	}
}

// deadHolder has a replica hold the lock for a minute and die.
func (c *cluster) deadHolder() {
	a := c.replica("dead")
	c.held(a, a.guard(), time.Hour)
	time.Sleep(time.Minute)
	a.kill()
}

// Callers that have less time than what they have to wait for must not all begin to wait again: the first holder of a
// lock waits for its token, one holds off after a break, and one is cancelled between its acquisition and its claim under
// a dead holder.
func TestCallersWithLittleTime(t *testing.T) {
	inCase(t, "of a new lock", func(_ *testing.T, c *cluster) { c.wantBegun(c.replica("a").guard(), time.Second) })
	inCase(t, "of a broken lock", func(t *testing.T, c *cluster) {
		c.deadHolder()
		c.breakGuard()
		l := c.replica("b").guard()
		wantError(t, l.Do(c.within(10*time.Second), taking(0)), "did not expire by itself", "deadline")
		c.wantBegun(l, 10*time.Second)
	})
	inCase(t, "cancelled under a dead holder", func(t *testing.T, c *cluster) {
		c.deadHolder()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(c.t.Context())
		b := c.replica("b").meets(after("acquire", cancel))
		wantError(t, b.guard().Do(ctx, taking(0)), context.Canceled.Error())
		b.meets(nil)
		c.wantBegun(b.guard(), 10*time.Second)
	})
}

// The entry of one slot fails, and the other slot is free.
func TestSlotThatFailsIsPassedOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &faultyStore{Store: c.store}
		s.meets(of("0-lock-guard", errors.New("500")), nil)
		c.wantBegun(&soloist.Lock{Name: "guard", Store: s, Lease: D, Slots: 2}, 5*time.Minute)
	})
}

// A replica that may lease a slot and not write it does not take the slot again and again.
func TestLockSlotThatCannotBeWritten(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a").meets(failWrites(fs.ErrPermission)), c.replica("b")
		c.held(b, b.guard(), time.Hour)
		_ = a.pool(2).Do(c.within(5*time.Minute), func(context.Context, *soloist.Run) error { t.Error("it was called"); return nil })
		if n := a.tap.counts()["acquire"]; n > int(5*time.Minute/(D/6))+1 {
			t.Errorf("it acquired the free slot %d times in five minutes", n)
		}
	})
}

// The store does not answer, and a call of the same process waits for it. So nothing is known to be held, and a call behind it
// has no holder to name.
func TestCallsBesideOneThatTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a").meets(fail(errNetwork))
		l, first := a.guard(), make(chan error)
		go func() { first <- l.Do(c.t.Context(), c.watch("a", nil)) }()
		time.Sleep(time.Minute)
		for name, want := range map[string]string{"Do": "another call of this process still tries", "TryDo": errNetwork.Error()} {
			err := doers[name](l, c.within(time.Minute), c.watch("a", nil))
			wantError(t, err, want, context.DeadlineExceeded.Error())
			if errors.Is(err, store.ErrHeld) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		a.meets(nil)
		c.ok(<-first)
		a.wantLines(1, "store", "lock=guard", errNetwork.Error())
		c.wantRuns(1)
	})
}

// The first holder of a lock has its lease while it waits for the token of its claim.
func TestTryDoUnderLeaseWithoutClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		c.meanwhile(func() { c.ok(a.guard().Do(c.t.Context(), taking(0))) })
		time.Sleep(time.Millisecond)
		for _, r := range []*replica{a, b} {
			err := r.guard().TryDo(c.t.Context(), taking(0))
			if !errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), "leased, not claimed yet") {
				t.Errorf("%s: got %v", r.Replica, err)
			}
		}
		time.Sleep(time.Minute)
	})
}

// Something else than a replica has the lease for longer than a replica needs until it claims. A process that has seen it says
// so.
func TestLockUnderForeignLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := c.replica("a").guard()
		if err := l.Do(c.t.Context(), taking(0)); err != nil {
			t.Fatal(err)
		}
		defer c.occupy("0-lock-guard")()
		wantError(t, l.TryDo(c.t.Context(), taking(0)), store.ErrHeld.Error(), "leased, not claimed yet")
		wantError(t, l.Do(c.within(time.Minute), taking(0)), "or longer, by a client that claims nothing", "deadline")
		err := l.TryDo(c.t.Context(), taking(0))
		if wantError(t, err, "leased since ", "or longer, by a client that claims nothing"); !errors.Is(err, store.ErrHeld) {
			t.Errorf("%v is not ErrHeld", err)
		}
	})
}

// A replica that acquires the lock of a holder that has died has claimed nothing by then: TryDo does not name the dead one.
func TestTryDoNamesNoDeadHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.deadHolder()
		time.Sleep(2 * D)
		a := c.replica("a").meets(before("acquire", func() {
			e, err := c.store.Read(c.t.Context(), guardEntry)
			if err == nil {
				_, err = c.store.Lease(guardEntry, "00000000-0000-4000-8000-000000000000").Acquire(c.t.Context(), D, e.ETag)
			}
			c.ok(err)
		}))
		wantError(t, a.guard().TryDo(c.t.Context(), taking(0)), store.ErrHeld.Error(), "leased, not claimed yet")
	})
}

// The context of a holder that is cut off ends with ErrLost before the next holder begins, and that
// is no later than a lease and a little after the cut, also if an operator breaks its lease. The other slots work on.
// A lease that is shorter than the store's is had as soon, also by a caller that comes again and again.
func TestKilledHolderOfLockIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		slots        int
		lease, held  time.Duration
		broken, asks bool
		most         time.Duration
	}{
		{1, D, time.Second, false, false, D + time.Second},
		{1, D, 17 * time.Minute, false, false, D + time.Second},
		{2, D, time.Minute, false, false, D + time.Second},
		{1, D, time.Minute, true, false, D + D/6 + time.Second},
		{1, 3 * time.Second, time.Minute, false, false, 4500 * time.Millisecond},
		{1, 3 * time.Second, time.Minute, false, true, 4500 * time.Millisecond},
	} {
		inCase(t, fmt.Sprint(tt), func(t *testing.T, c *cluster) {
			a, b, other := c.replica("a"), c.replica("b"), c.replica("other")
			lock := func(r *replica) *soloist.Lock {
				r.tap.Store = coarse{c.store}
				l := r.pool(tt.slots)
				l.Lease = tt.lease
				return l
			}
			end := c.held(a, lock(a), time.Hour)
			if tt.slots > 1 {
				c.held(other, lock(other), time.Hour)
			}
			time.AfterFunc(tt.held, func() {
				a.kill()
				if tt.broken {
					c.breakGuard()
				}
			})
			killed, l := time.Now().Add(tt.held), lock(b)
			for tt.asks && errors.Is(l.TryDo(c.t.Context(), c.watch("b", nil)), soloist.ErrHeld) {
				time.Sleep(200 * time.Millisecond)
			}
			if !tt.asks {
				c.ok(l.Do(c.t.Context(), c.watch("b", nil)))
			}
			if err := <-end; !errors.Is(err, soloist.ErrLost) {
				t.Errorf("the old holder gets %v", err)
			}
			old, next := ranBy(c, "a", time.Time{})[0], ranBy(c, "b", time.Time{})[0]
			if !errors.Is(old.cause, soloist.ErrLost) || !old.end.Before(next.start) {
				t.Errorf("the context ended with %v at %s, and the next holder began at %s", old.cause, old.end, next.start)
			}
			if took := next.start.Sub(killed); took > tt.most {
				t.Errorf("replaced after %s, want at most %s", took, tt.most)
			}
		})
	}
}

// A function that goes on after the loss returns ErrLost, whatever it returns itself, and also after a stop, or on a machine that
// was suspended, whose timers stood still; what it returns, or its panic, is not lost.
func TestFunctionThatOutlivesItsLock(t *testing.T) {
	own := errors.New("out of paper")
	for name, tt := range map[string]struct {
		broken, stopped, panics bool
		returned                error
	}{
		"cut off":                {},
		"broken":                 {broken: true},
		"stopped, then cut off":  {stopped: true},
		"an error":               {returned: own},
		"the end of its context": {returned: context.Canceled},
		"a panic":                {panics: true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			time.AfterFunc(5*time.Second, func() {
				if tt.broken {
					c.breakGuard()
				} else {
					a.kill()
				}
			})
			overrun := make(chan string, 2)
			l := a.guard()
			l.Overrun = func(name string, cause error) { overrun <- fmt.Sprint(name, " ", errors.Is(cause, soloist.ErrLost)) }
			ctx := c.t.Context()
			if tt.stopped {
				ctx = c.within(3 * time.Second)
			}
			err := l.Do(ctx, func(context.Context, *soloist.Run) error {
				time.Sleep(time.Minute)
				if tt.panics {
					panic("out of ink")
				}
				return tt.returned
			})
			if tt.panics {
				wantError(t, err, "out of ink")
			} else if !errors.Is(err, soloist.ErrLost) || tt.returned != nil && !errors.Is(err, tt.returned) {
				t.Errorf("got %v", err)
			}
			if len(overrun) != 1 || <-overrun != "guard true" {
				t.Error("Overrun was not called once, with its loss")
			}
			c.ok(b.guard().Do(c.within(time.Minute), c.watch("b", nil)))
		})
	}
	inCase(t, "suspended", func(t *testing.T, c *cluster) {
		m := &suspended{}
		err := c.replica("a").on(m).guard().Do(c.t.Context(), func(context.Context, *soloist.Run) error {
			time.Sleep(100 * time.Millisecond)
			m.slept.Add(int64(time.Hour))
			return nil
		})
		if !errors.Is(err, soloist.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

// A call that is refused, since a function of the lock goes on without its lease, has lost nothing, and no replica holds the
// lock. A call that waits learns of it when its context ends.
func TestLockTakesNothingBesideAnOverrun(t *testing.T) {
	for slots := 1; slots <= 2; slots++ {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			l := c.replica("a").pool(slots)
			over, done := make(chan struct{}), make(chan error, 2)
			l.Overrun = func(string, error) { close(over) }
			wantRefused := func(err error) {
				t.Helper()
				if err == nil || errors.Is(err, soloist.ErrLost) || errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), "takes nothing new") {
					t.Errorf("got %v", err)
				}
			}
			go func() {
				done <- l.Do(c.t.Context(), func(context.Context, *soloist.Run) error { time.Sleep(10 * time.Minute); return nil })
			}()
			time.Sleep(5 * time.Second)
			if slots == 1 {
				waits := c.within(5 * time.Minute)
				go func() { done <- l.Do(waits, c.watch("a", nil)) }()
			}
			for _, slot := range []string{guardEntry, "soloist/1-lock-guard"} {
				_ = c.store.Break(c.t.Context(), slot, 0) // which of them is held is not known
			}
			<-over
			for _, do := range doers {
				wantRefused(do(l, c.within(time.Minute), c.watch("a", nil)))
			}
			if slots == 1 {
				wantRefused(<-done)
			}
			if err := <-done; !errors.Is(err, soloist.ErrLost) {
				t.Errorf("the function that goes on: got %v", err)
			}
		})
	}
}

// Inside the function the end of the caller's context is ErrStopped. The lock is free at once
// when the function has returned.
func TestContextEndsInsideFunction(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		begin := time.Now()
		err := c.hold(c.within(time.Minute), a, a.guard(), time.Hour)
		if took := time.Since(begin); !errors.Is(err, soloist.ErrStopped) || took > time.Minute {
			t.Errorf("got %v after %s", err, took)
		}
		c.ok(b.guard().TryDo(c.t.Context(), c.watch("b", nil)))
		c.wantRuns(2)
	})
}

// A replica whose claim was not confirmed in time, and was settled by another one, takes the lock
// again: Do does not return before its function was called.
func TestLockClaimThatOthersHaveSettled(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a").meets(awayFrom("write", 2*D)), c.replica("b")
		time.AfterFunc(D+5*time.Second, func() { c.ok(b.guard().TryDo(c.t.Context(), taking(0))) })
		l, calls := a.guard(), 0
		for _, do := range []doer{(*soloist.Lock).Do, (*soloist.Lock).TryDo} {
			before := calls
			err := do(l, c.t.Context(), func(context.Context, *soloist.Run) error { calls++; return nil })
			if err != nil || calls != before+1 {
				t.Errorf("got %v, and the function was called %d times: want nil after one call", err, calls-before)
			}
		}
	})
}
