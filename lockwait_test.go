package soloist_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

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
		"a longer lease":                     {30 * time.Second, time.Second, right, nil, 200 * time.Millisecond},
		"a longer lease for minutes":         {30 * time.Second, 80 * time.Second, right, nil, 10 * time.Second},
		"the longest lease for minutes":      {time.Minute, 80 * time.Second, right, nil, 10 * time.Second},
		"wrong clocks and exact dates":       {D, time.Second, wrong, nil, 200 * time.Millisecond},
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
			var all sync.WaitGroup
			share, left, begin := map[string]int{}, tt.rounds, time.Now()
			for i, r := range c.replicas("a", "b", "c", "d") {
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
						c.ok(l.Do(t.Context(), func(ctx context.Context, _ *soloist.Run) error {
							if more = left > 0; more {
								left--
								share[r.Replica]++
								return pause(ctx, tt.held)
							}
							return nil
						}))
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

// A call of TryDo ends in its hold-off. Until its lease has expired the next one waits, and does not say that the dead holder
// holds it.
func TestTryDoAfterCallThatHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.deadHolder()
		c.breakGuard()
		l := c.replica("b").guard()
		wantError(t, l.TryDo(c.within(5*time.Second), taking(0)), "did not expire by itself")
		err := l.TryDo(c.within(time.Second), taking(0))
		if wantError(t, err, "has yet to expire"); errors.Is(err, store.ErrHeld) {
			t.Errorf("under the lease of the first call: %v", err)
		}
		begin := time.Now()
		if err := l.TryDo(c.within(time.Minute), taking(0)); err != nil || time.Since(begin) > D+D/6 {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
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

// Something else than a replica has the lease for longer than a replica needs until it claims. A process that has seen it says so.
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

// Between the look of TryDo and its acquisition another replica has the lock for a moment: it is free again.
func TestTryDoAfterBriefHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		brief := func() { c.ok(c.replica("b").guard().Do(c.t.Context(), taking(0))) }
		brief()
		a := c.replica("a").meets(before("acquire", sync.OnceFunc(brief)))
		begin := time.Now()
		if err := a.guard().TryDo(c.t.Context(), taking(0)); err != nil || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("got %v after %s, want the lock", err, time.Since(begin))
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
