package soloist_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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

// Bad input is an error that says which field, which value and what is allowed, from Validate and at
// once from each method.
func TestLockRefusesBadInput(t *testing.T) {
	good := func(ctx context.Context, _ *soloist.Run) error { return ctx.Err() }
	memory := &local.Memory{}
	for name, tt := range map[string]struct {
		lock *soloist.Lock
		want []string
	}{
		"no name":              {&soloist.Lock{Store: memory}, []string{"Name", `""`, "empty"}},
		"a long name":          {&soloist.Lock{Store: memory, Name: strings.Repeat("x", 600)}, []string{"Name", "xxx", "600", "512"}},
		"a name that is cut":   {&soloist.Lock{Store: memory, Name: strings.Repeat("Ü", 257)}, []string{"Name", "ÜÜ", "514", "512"}},
		"control characters":   {&soloist.Lock{Store: memory, Name: "a\x00b"}, []string{"Name", `"a\x00b"`, "printable"}},
		"a line break":         {&soloist.Lock{Store: memory, Name: "a\nb"}, []string{"Name", `"a\nb"`, "printable"}},
		"no UTF-8":             {&soloist.Lock{Store: memory, Name: "a\xff"}, []string{"Name", `"a\xff"`, "printable"}},
		"no store":             {&soloist.Lock{Name: "guard"}, []string{"guard", "Store", "nil"}},
		"negative slots":       {&soloist.Lock{Store: memory, Name: "guard", Slots: -1}, []string{"guard", "Slots", "-1", "1 to 100"}},
		"many slots":           {&soloist.Lock{Store: memory, Name: "guard", Slots: 101}, []string{"Slots", "101", "1 to 100"}},
		"very many slots":      {&soloist.Lock{Store: memory, Name: "guard", Slots: math.MaxInt}, []string{"Slots", "1 to 100"}},
		"a bare number":        {&soloist.Lock{Store: memory, Name: "guard", Lease: 30}, []string{"Lease", "30", "time.Second"}},
		"a negative lease":     {&soloist.Lock{Store: memory, Name: "guard", Lease: -time.Minute}, []string{"Lease", "-1m0s", "1s"}},
		"a long lease":         {&soloist.Lock{Store: memory, Name: "guard", Lease: time.Hour}, []string{"Lease", "1h0m0s", "1m0s"}},
		"half a second":        {&soloist.Lock{Store: memory, Name: "guard", Lease: 1500 * time.Millisecond}, []string{"Lease", "1.5s", "whole seconds"}},
		"a bad app":            {&soloist.Lock{Store: memory, Name: "guard", App: "My App"}, []string{"App", "My App", "lower-case"}},
		"a long replica":       {&soloist.Lock{Store: memory, Name: "guard", Replica: strings.Repeat("r", 300)}, []string{"Replica"}},
		"two mistakes at once": {&soloist.Lock{Slots: -1, Lease: 30}, []string{"Name", "Store", "Slots"}},
	} {
		t.Run(name, func(t *testing.T) {
			lock := tt.lock
			wantError(t, lock.Validate(), tt.want...)
			wantError(t, lock.Do(t.Context(), good), tt.want...)
			wantError(t, lock.TryDo(t.Context(), good), tt.want...)
		})
	}
	wantError(t, (&soloist.Lock{Store: memory, Name: "guard"}).Do(t.Context(), nil), "guard", "function", "nil")
	wantError(t, (&soloist.Lock{Store: memory, Name: "guard"}).TryDo(t.Context(), nil), "guard", "function", "nil")
}

// A lock needs no scheduler, and its zero values work.
func TestLockWithoutScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := &soloist.Lock{Name: "guard", Store: c.store}
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
				t.Error(err)
			}
		}
		disjoint(t, c.all())
		if r := c.record("0-lock-guard"); r.Run.Lease != store.Seconds(30*time.Second) || !strings.HasPrefix(r.Run.Replica, "replica-") {
			t.Errorf("got %+v", r.Run)
		}
	})
}

// Fields that change after the first call have no effect.
func TestLockFieldsAreReadOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := c.replica("a").guard()
		if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
			t.Error(err)
		}
		l.Slots, l.Lease = -1, 7
		if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
			t.Error(err)
		}
	})
}

// Stores that wrap another one, by value: a mapStore cannot be compared, and so cannot a wrapStore
// around it.
type (
	wrapStore struct{ store.Store }
	mapStore  struct {
		store.Store
		calls map[string]int
	}
)

// nested takes locks of one name inside of each other, over these stores, and returns the error of the
// innermost one.
func nested(ctx context.Context, stores ...store.Store) (err error) {
	l := &soloist.Lock{Name: "guard", Store: stores[0], Lease: D}
	failed := l.Do(ctx, func(ctx context.Context, _ *soloist.Run) error {
		if len(stores) > 1 {
			err = nested(ctx, stores[1:]...)
		}
		return nil
	})
	return errors.Join(failed, err)
}

// A lock inside itself is refused at once, whatever kind of store it has.
func TestLockInsideItselfOverStores(t *testing.T) {
	for name, other := range map[string]store.Store{
		"pointer":               &local.Memory{},
		"wrapped":               wrapStore{&local.Memory{}},
		"mapped":                mapStore{&local.Memory{}, map[string]int{}},
		"wrapped around mapped": wrapStore{mapStore{&local.Memory{}, map[string]int{}}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			begin, first := time.Now(), &local.Memory{}
			wantError(t, nested(c.within(time.Hour), other, other), "held by the caller already")
			wantError(t, nested(c.within(time.Hour), first, other, first), "held by the caller already")
			wantError(t, nested(c.within(time.Hour), other, first, other), "held by the caller already")
			if err := nested(c.within(time.Hour), other, first); err != nil {
				t.Errorf("over another store: %v", err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("refused after %s", took)
			}
		})
	}
}

// lockRecord reads the record of an entry that is no job's.
func (c *cluster) lockRecord(name string) store.Record {
	c.t.Helper()
	e, err := c.store.Read(c.t.Context(), "soloist/"+name)
	if err != nil {
		c.t.Fatal(err)
	}
	rec, err := store.DecodeRecord(e.Record, "soloist", name)
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

func TestRunHasLocksOfItsStoreAndReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		nested := int64(0)
		job := soloist.Job{Name: "work", Schedule: "@every 1h", Do: func(ctx context.Context, run *soloist.Run) error {
			return run.Lock("tenant-42").Do(ctx, func(ctx context.Context, held *soloist.Run) error {
				return held.Lock("inner").Do(ctx, func(_ context.Context, inner *soloist.Run) error {
					nested = inner.Token
					return nil
				})
			})
		}}
		outcome, err := c.replica("a", job).RunNow(c.t.Context(), "work", "now")
		if err != nil || outcome.Status != store.Succeeded {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		outer, inner := c.lockRecord("0-lock-tenant-42"), c.lockRecord("0-lock-inner")
		if outer.Run.Replica != "a" || inner.Run.Replica != "a" || inner.Token != nested || nested == 0 {
			t.Errorf("got the holders %q and %q, and the token %d in place of %d", outer.Run.Replica, inner.Run.Replica, nested, inner.Token)
		}
	})
}

// The lock that a run has is that of the scheduler.
func TestLockOfRunIsThatOfScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 1h", Do: func(ctx context.Context, run *soloist.Run) error {
			return run.Lock("tenant-42").TryDo(ctx, func(context.Context, *soloist.Run) error { return nil })
		}}
		a := c.replica("a", job)
		err := c.replica("b", job).Lock("tenant-42").Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			outcome, err := a.RunNow(ctx, "work", "now")
			if err != nil || outcome.Status != store.Failed || !strings.Contains(outcome.Reason, soloist.ErrHeld.Error()) {
				t.Errorf("got %+v, %v", outcome, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestLockOfRunWithoutScheduler(t *testing.T) {
	run := &soloist.Run{}
	err := run.Lock("tenant-42").Do(t.Context(), func(context.Context, *soloist.Run) error { return nil })
	if want := `lock "tenant-42": Store is nil`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// pool returns a lock with slots.
func (r *replica) pool(slots int) *soloist.Lock {
	l := r.guard()
	l.Slots = slots
	return l
}

// most returns how many of the runs were under way at once.
func most(runs []ran) (n int) {
	for _, r := range runs {
		at := 0
		for _, other := range runs {
			if !other.start.After(r.start) && other.end.After(r.start) {
				at++
			}
		}
		n = max(n, at)
	}
	return n
}

// As many callers as there are slots hold the lock, and no more. Under replicas with different numbers
// the largest counts, whichever of them comes first, and each replica keeps to its own.
func TestSlotsLimitHolders(t *testing.T) {
	for name, slots := range map[string]map[string]int{
		"equal":             {"a": 3, "b": 3, "c": 3},
		"one has more":      {"a": 2, "b": 2, "c": 5},
		"one has fewer":     {"a": 4, "b": 4, "c": 1},
		"a single one":      {"a": 4},
		"the most possible": {"a": 100},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var all sync.WaitGroup
			largest := 0
			for name, n := range slots {
				largest = max(largest, n)
				r := c.replica(name)
				l := r.pool(n)
				for range 2 * n {
					all.Go(func() {
						for range 3 {
							if err := c.hold(t.Context(), r, l, 10*time.Second); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			all.Wait()
			if n := most(c.all()); n != largest {
				t.Errorf("%d hold it at once, want %d", n, largest)
			}
			for name, n := range slots {
				if got := most(ranBy(c, name, time.Time{})); got > n {
					t.Errorf("%s holds it %d times at once, and has %d slots", name, got, n)
				}
			}
		})
	}
}

// A slot whose holder has died is free again after a lease; the other slots work on.
func TestSlotOfDeadHolderIsFreeAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		dead := c.held(a, a.pool(2), time.Hour)
		pool := b.pool(2)
		end := c.held(b, pool, time.Hour)
		if err := b.pool(2).TryDo(c.t.Context(), c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) {
			t.Errorf("got %v with both slots held", err)
		}
		a.kill()
		killed := time.Now()
		if err := c.hold(c.within(D+time.Second), b, pool, 0); err != nil {
			t.Error(err)
		}
		t.Logf("free after %s", time.Since(killed))
		if err := <-dead; !errors.Is(err, soloist.ErrLost) {
			t.Error(err)
		}
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}

// The tokens of one slot grow; those of two slots have no order.
func TestTokensOfSlotGrow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			r := c.replica(name)
			l := r.pool(1)
			all.Go(func() {
				for range 10 {
					if err := c.hold(c.t.Context(), r, l, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		tokens := []int64{}
		for _, r := range c.all() {
			tokens = append(tokens, r.Token)
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != 20 {
			t.Errorf("tokens %v", tokens)
		}
	})
}

// A lock of slots inside itself may wait for itself as well.
func TestSlotsInsideThemselvesAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		err := a.pool(2).Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			return cmp.Or(a.pool(2).TryDo(ctx, c.watch("a", nil)), errors.New("it is held twice"))
		})
		wantError(t, err, "held by the caller already")
	})
}

// A lease whose release got no answer has no holder: TryDo of that process waits for its end.
func TestTryDoAfterReleaseWithoutAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l, way := c.north("a", 1)
		nothing := func(context.Context, *soloist.Run) error { return nil }
		if err := l.Do(c.t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
		way.meet(func(op string, apply func() error) error {
			if op == "release" {
				return errNetwork
			}
			return apply()
		})
		for range 2 {
			if err := l.TryDo(c.t.Context(), nothing); err != nil {
				t.Error(err)
			}
		}
	})
}
