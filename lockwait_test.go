package soloist_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

// The longer a lock was held, the longer it may take until a caller sees that it is free: after a
// second no longer than a fifth of one, and never longer than a sixth of the lease and a little.
func TestLockIsHandedOverPromptly(t *testing.T) {
	for _, tt := range []struct{ lease, held, most time.Duration }{
		{D, 0, 200 * time.Millisecond},
		{D, time.Second, 200 * time.Millisecond},
		{D, 10*time.Minute + 2*time.Second, 2600 * time.Millisecond},
		{30 * time.Second, time.Second, 200 * time.Millisecond},
		{30 * time.Second, 80 * time.Second, 10 * time.Second},
		{time.Minute, 80 * time.Second, 10 * time.Second},
	} {
		inCase(t, fmt.Sprintf("lease %s, held for %s", tt.lease, tt.held), func(t *testing.T, c *cluster) {
			var all sync.WaitGroup
			for _, name := range []string{"a", "b", "c", "d"} {
				l := c.replica(name).Lock("guard")
				l.Lease = tt.lease
				r := c.replica(name)
				all.Go(func() {
					if err := c.hold(t.Context(), r, l, tt.held); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			c.wantRuns(4)
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
			of := func(r *replica) *soloist.Lock {
				l := r.Lock("guard")
				l.Lease = lease
				return l
			}
			shared := of(b)
			end := c.held(a, of(a), time.Hour)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if err := shared.Do(c.within(59*time.Minute+50*time.Second), c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			n := b.tap.counts()
			most := 60 + int(time.Hour/(lease/12))
			t.Logf("lease %s: %v in an hour, want at most %d reads", lease, n, most)
			if n["read"] > most || n["read"] < 100 || len(n) > 2 || n["create"] > 1 {
				t.Errorf("%v, want at most %d reads", n, most)
			}
			if err := <-end; err != nil {
				t.Error(err)
			}
		})
	}
}

var contended = flag.Int("contended", 400, "rounds of replicas that contend for a lock")

// No replica starves, however fast the others come back.
func TestNoReplicaStarvesForLock(t *testing.T) {
	for _, tt := range []struct {
		rounds        int
		latency, held time.Duration
	}{
		{*contended, 0, 100 * time.Millisecond}, // without a pause of its holder such a lock is never seen free
		{*contended, 5 * time.Millisecond, 0},
		{*contended, 5 * time.Millisecond, 100 * time.Millisecond},
		{*contended / 2, 5 * time.Millisecond, 2 * time.Second},
	} {
		if !nightly.Runs() && tt.held != 100*time.Millisecond {
			continue
		}
		inCase(t, fmt.Sprintf("calls take %s, held for %s", tt.latency, tt.held), func(t *testing.T, c *cluster) {
			var (
				all   sync.WaitGroup
				share = map[string]int{}
				left  = tt.rounds
			)
			begin := time.Now()
			for i, name := range []string{"a", "b", "c", "d"} {
				r := c.replica(name)
				dice := rand.New(rand.NewPCG(1, uint64(i)))
				var mu sync.Mutex
				r.meets(func(_ string, apply func() error) error {
					mu.Lock()
					d := tt.latency/2 + time.Duration(dice.Int64N(int64(tt.latency)+1))
					mu.Unlock()
					_ = pause(t.Context(), d)
					return apply()
				})
				l := r.guard()
				all.Go(func() {
					for more := true; more; {
						err := l.Do(t.Context(), func(ctx context.Context, _ *soloist.Run) error {
							if more = left > 0; more {
								left--
								share[name]++
								return pause(ctx, tt.held)
							}
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			t.Logf("shares of %d rounds in %s: %v", tt.rounds, time.Since(begin), share)
			for _, name := range []string{"a", "b", "c", "d"} {
				if share[name] < tt.rounds/40 {
					t.Errorf("%s has %d rounds of %d", name, share[name], tt.rounds)
				}
			}
		})
	}
}

// Wrong wall clocks change neither who holds the lock nor how soon another one does. Without dates of
// the store a clock that is wrong makes a caller look as late as after a long hold.
func TestLockDoesNotDependOnWallClocks(t *testing.T) {
	for name, date := range map[string]func(time.Time) time.Time{"exact dates": nil, "whole seconds": wholeSeconds, "no dates": noDate} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var all sync.WaitGroup
			for i, skew := range []time.Duration{0, time.Hour, -time.Hour, 4 * time.Second} {
				r := c.replica(fmt.Sprint("r", i)).skewed(skew)
				r.tap.date = date
				l := r.guard()
				all.Go(func() {
					for range 3 {
						if err := c.hold(t.Context(), r, l, time.Second); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			c.wantRuns(12)
			disjoint(t, c.all())
			most := 200 * time.Millisecond
			if name == "no dates" {
				most = D / 6
			}
			for i, r := range c.all()[1:] {
				if took := r.start.Sub(c.all()[i].end); took > most {
					t.Errorf("holder %d begins %s after the end of the one before, want at most %s", i+2, took, most)
				}
			}
		})
	}
}

// tries calls Do n times, each for at most d, and returns how often the function was called.
func (c *cluster) tries(l *soloist.Lock, n int, d time.Duration) (begun int) {
	for range n {
		ctx, cancel := context.WithTimeout(c.t.Context(), d)
		_ = l.Do(ctx, func(context.Context, *soloist.Run) error { begun++; return nil })
		cancel()
	}
	return begun
}

// holderDies has a replica hold a lock for a minute and die. The test has to wait for it at its end.
func (c *cluster) holderDies(lock string) *sync.WaitGroup {
	a := c.replica("a")
	holding := &sync.WaitGroup{}
	holding.Go(func() { c.holds(a, lock, time.Hour) })
	time.Sleep(time.Minute)
	a.kill()
	return holding
}

// The first holder of a lock waits for its token. Callers that have less time than that must not all
// begin to wait anew.
func TestNewLockOfCallersWithLittleTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := c.replica("a").Lock("new")
		l.Lease = D
		if begun := c.tries(l, 100, time.Second); begun < 98 {
			t.Errorf("%d of 100 calls were begun", begun)
		}
	})
}

// The lease of a dead holder is broken, so that its successor holds off for longer than its callers
// wait.
func TestBrokenLockOfCallersWithLittleTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		defer c.holderDies("x").Wait()
		if err := c.store.Break(c.t.Context(), "soloist/0-lock-x", 0); err != nil {
			t.Fatal(err)
		}
		l := c.replica("b").Lock("x")
		l.Lease = D
		err := l.Do(c.within(10*time.Second), func(context.Context, *soloist.Run) error { return nil })
		wantError(t, err, "did not expire by itself", "deadline")
		if begun := c.tries(l, 100, 10*time.Second); begun < 95 {
			t.Errorf("%d of 100 calls were begun", begun)
		}
	})
}

// A call of TryDo ends in its hold-off. Until its lease has expired the next one waits, and does not say that the dead holder holds it.
func TestTryDoAfterCallThatHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		defer c.holderDies("x").Wait()
		if err := c.store.Break(t.Context(), "soloist/0-lock-x", 0); err != nil {
			t.Fatal(err)
		}
		l := c.replica("b").Lock("x")
		l.Lease = D
		try := func(d time.Duration) error {
			return l.TryDo(c.within(d), func(context.Context, *soloist.Run) error { return nil })
		}
		wantError(t, try(5*time.Second), "did not expire by itself")
		if err := try(time.Second); errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), "has yet to expire") {
			t.Errorf("under the lease of the first call: %v", err)
		}
		begin := time.Now()
		if err := try(time.Minute); err != nil || time.Since(begin) > D+D/6 {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// The context of a caller ends between its acquisition and its claim, under the record of a dead holder.
func TestLockIsNotReleasedUnderDeadHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		defer c.holderDies("x").Wait()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(c.t.Context())
		s := &faultyStore{Store: c.store}
		s.meets(nil, func(op, _ string) error {
			if op == "acquire" {
				cancel()
			}
			return nil
		})
		l := &soloist.Lock{Name: "x", Store: s, Lease: D}
		if err := l.Do(ctx, func(context.Context, *soloist.Run) error { return nil }); err == nil {
			t.Error("a call whose context has ended has done its work")
		}
		s.meets(nil, nil)
		if begun := c.tries(l, 100, 10*time.Second); begun < 95 {
			t.Errorf("%d of 100 calls were begun", begun)
		}
	})
}

// The entry of one slot fails, and the other slot is free.
func TestSlotThatFailsIsPassedOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &faultyStore{Store: c.store}
		s.meets(of("0-lock-x", errors.New("500")), nil)
		l := &soloist.Lock{Name: "x", Store: s, Lease: D, Slots: 2}
		if begun := c.tries(l, 20, 5*time.Minute); begun != 20 {
			t.Errorf("%d of 20 calls were begun", begun)
		}
	})
}

// The lease of a holder that is cut off is broken. It trusts its lease for a while, and nobody else begins
// before that trust has ended.
func TestBrokenLockIsHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		var holding sync.WaitGroup
		var lost time.Time
		holding.Go(func() {
			l := a.Lock("x")
			l.Lease = D
			_ = l.Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
				<-ctx.Done()
				lost = time.Now()
				return nil
			})
		})
		time.Sleep(time.Minute)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/0-lock-x", 0); err != nil {
			t.Fatal(err)
		}
		l := b.Lock("x")
		l.Lease = D
		var begun time.Time
		if err := l.Do(c.t.Context(), func(context.Context, *soloist.Run) error { begun = time.Now(); return nil }); err != nil {
			t.Error(err)
		}
		holding.Wait()
		if begun.Before(lost) {
			t.Errorf("begun %s before the trust of the last holder ended", lost.Sub(begun))
		}
	})
}

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

// Something else than a replica has the lease for longer than a replica needs until it claims. A process that has seen it says so.
func TestLockUnderForeignLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		nothing := func(context.Context, *soloist.Run) error { return nil }
		l, _ := c.north("a", 1)
		if err := l.Do(c.t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
		defer c.occupy("0-lock-north")()
		wantError(t, l.TryDo(c.t.Context(), nothing), store.ErrHeld.Error(), "leased, not claimed yet")
		wantError(t, l.Do(c.within(time.Minute), nothing), "or longer, by a client that claims nothing", "deadline")
		err := l.TryDo(c.t.Context(), nothing)
		if wantError(t, err, "leased since ", "or longer, by a client that claims nothing"); !errors.Is(err, store.ErrHeld) {
			t.Errorf("%v is not ErrHeld", err)
		}
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
