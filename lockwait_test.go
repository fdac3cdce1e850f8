package soloist_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/nightly"
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
