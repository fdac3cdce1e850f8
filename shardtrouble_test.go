package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/nightly"
)

// ailing is feed with a task that a function may end at once; else it goes on, with heartbeats.
func ailing(n int, backoff time.Duration, end func(ctx context.Context, run *soloist.Run) error) soloist.Singleton {
	s := feed(n)
	s.Backoff, s.HeartbeatTimeout = backoff, D
	s.Do = func(ctx context.Context, run *soloist.Run) error {
		if end != nil {
			if err := end(ctx, run); err != nil {
				return err
			}
		}
		for lasts(ctx, D/2) {
			_ = run.Heartbeat("")
		}
		return ctx.Err()
	}
	return s
}

// lasts waits, and returns false if ctx has ended.
func lasts(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// wantHeld checks that no shard was without a holder for longer than that, since the cluster began.
func (c *cluster) wantHeld(shards int, longest time.Duration) {
	c.t.Helper()
	for _, name := range soloist.ShardNames("feed", shards) {
		free := time.Time{}
		for _, r := range c.all() {
			if r.Job != name {
				continue
			}
			if gap := r.start.Sub(free); !free.IsZero() && gap > longest {
				c.t.Errorf("nobody held %s for %s until %s", name, gap, r.start.Format(time.TimeOnly))
			}
			free = r.end
		}
		if !free.IsZero() && time.Since(free) > longest {
			c.t.Errorf("nobody holds %s, for %s", name, time.Since(free))
		}
	}
}

// count returns how many runs there were of which f is true.
func (c *cluster) count(f func(ran) bool) (n int) {
	for _, r := range c.all() {
		if f(r) {
			n++
		}
	}
	return n
}

// A replica that has handed shards over since another one came takes them back at once if that one dies:
// its tasks have not failed, so that their Backoff does not count.
func TestHandOverIsNoFailure(t *testing.T) {
	for _, backoff := range []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute} {
		inCase(t, backoff.String(), func(_ *testing.T, c *cluster) {
			work := ailing(8, backoff, nil)
			c.join(0, work, "a")
			until(5 * D)
			b := c.join(0, work, "b")[0]
			time.Sleep(5 * D / 2)
			c.wantEven(8, "a", "b")
			b.kill()
			died := time.Now()
			time.Sleep(2 * D)
			if n := c.count(func(r ran) bool { return r.replica == "a" && r.end.IsZero() }); n != 8 {
				c.t.Errorf("a holds %d shards %s after b has died, want all", n, time.Since(died))
			}
		})
	}
}

// A task that returns once has its shard moved. No shard waits for the end of a Backoff, however long.
func TestShardIsHeldWhileOneReplicaRests(t *testing.T) {
	for _, tt := range []struct {
		shards, replicas int
		backoff          time.Duration
		err              error
	}{{2, 2, 5 * time.Minute, errors.New("once")}, {2, 2, 10 * time.Minute, errors.New("once")}, {6, 3, 30 * time.Minute, errors.New("once")},
		{16, 3, 30 * time.Minute, errors.New("once")}, {2, 2, 10 * time.Minute, nil}, {6, 3, 10 * time.Minute, nil}, {16, 2, 10 * time.Minute, nil}, {16, 3, 10 * time.Minute, nil}} {
		if tt.shards == 16 && !nightly.Runs() {
			continue
		}
		inCase(t, fmt.Sprintf("%d over %d, %s, %v", tt.shards, tt.replicas, tt.backoff, tt.err), func(_ *testing.T, c *cluster) {
			work := feed(tt.shards)
			work.Backoff = tt.backoff
			work.Do = func(ctx context.Context, run *soloist.Run) error {
				if run.Shard == 0 && sinceMidnight() < 4*D {
					lasts(ctx, 4*D-sinceMidnight())
					return tt.err
				}
				<-ctx.Done()
				return ctx.Err()
			}
			names := letters(tt.replicas)
			c.join(0, work, names...)
			until(300 * D)
			c.wantHeld(tt.shards, 2*D)
			c.wantEven(tt.shards, names...)
			c.wantOneHolder()
		})
	}
}

// A shard whose task stalls or fails on one replica only leaves it, as an unsharded singleton does, and
// does not come back. Another one is handed over for it.
func TestSickReplicaIsLeft(t *testing.T) {
	ends := map[string]func(context.Context) error{
		"stalls": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"fails":  func(context.Context) error { return errors.New("not here") },
		"fails later": func(ctx context.Context) error {
			lasts(ctx, 4*time.Second)
			return errors.New("not here")
		},
	}
	for name, end := range ends {
		for _, tt := range []struct{ shards, replicas int }{{1, 2}, {2, 2}, {6, 3}, {16, 2}} {
			beside(t, fmt.Sprintf("%s, %d over %d", name, tt.shards, tt.replicas), func(_ *testing.T, c *cluster) {
				names, sick := letters(tt.replicas), ""
				for _, name := range names {
					c.join(0, ailing(tt.shards, 0, func(ctx context.Context, run *soloist.Run) error {
						if run.Shard > 0 {
							return nil
						}
						for sick == "" && lasts(ctx, min(D/2, 4*D-sinceMidnight())) { // all is well for some leases
							_ = run.Heartbeat("")
							if sinceMidnight() >= 4*D {
								sick = name
							}
						}
						if sick != name || ctx.Err() != nil {
							return ctx.Err()
						}
						return end(ctx)
					}), name)
				}
				until(100 * D)
				if n := c.count(func(r ran) bool { return r.Shard == 0 && r.replica == sick }); n > 4 {
					c.t.Errorf("shard 0 ran %d times on %s, where it fails", n, sick)
				}
				if n := c.count(func(r ran) bool { return r.Shard > 0 }); n > 3*tt.shards {
					c.t.Errorf("the other shards were begun %d times", n)
				}
				c.wantHeld(tt.shards, 2*D)
				c.wantEven(tt.shards, names...)
				c.wantOneHolder()
			})
		}
	}
}

// A replica on which everything fails is left alone for the most part. Nothing is held by it, and its
// part is offered to it once an hour.
func TestReplicaOnWhichAllFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.join(0, feed(8), "a")
		until(D)
		c.join(0, ailing(8, 0, func(context.Context, *soloist.Run) error { return errors.New("not here") }), "sick")
		until(240 * D)
		if n := c.count(func(r ran) bool { return r.replica == "sick" }); n > 40 {
			t.Errorf("sick was tried %d times in an hour", n)
		}
		c.wantHeld(8, 2*D)
		c.wantEven(8, "a")
	})
}

var errListing = errors.New("no listing today")

// listless has the listings of a replica fail while bad is set.
func (r *replica) listless(bad *atomic.Bool) {
	r.meets(func(op string, apply func() error) error {
		if op == "list" && bad.Load() {
			return errListing
		}
		return apply()
	})
}

// The shards of a dead replica are held again in time, also where listings take the place of reads and
// fail since before its death.
func TestShardsAreHeldWhileListingsFail(t *testing.T) {
	for _, n := range []int{11, 12, 16} {
		inCase(t, fmt.Sprint(n), func(_ *testing.T, c *cluster) {
			all, bad := c.join(0, feed(n), "a", "b"), new(atomic.Bool)
			for _, r := range all {
				r.listless(bad)
			}
			until(20 * D)
			c.wantEven(n, "a", "b")
			bad.Store(true)
			time.Sleep(D / 2)
			all[0].kill()
			time.Sleep(4 * D)
			c.wantHeld(n, 2*D)
			bad.Store(false)
			time.Sleep(4 * D)
			c.wantEven(n, "b")
		})
	}
}

// That shards cannot be spread is told once, and so is its end. Health has it meanwhile, and the store
// does not count as out of reach.
func TestFailingListingsAreToldOnce(t *testing.T) {
	for name, begin := range map[string]time.Duration{"from the start": 0, "later": 20 * D} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var begins, ends atomic.Int64
			var bad atomic.Bool
			r := c.replica("a", feed(4))
			r.Store = listingTap{r.tap}
			r.listless(&bad)
			r.Events = func(e event.Event) {
				switch e.Kind {
				case event.StoreTrouble:
					begins.Add(1)
				case event.StoreBack:
					ends.Add(1)
				}
			}
			bad.Store(begin == 0)
			c.launch(r)
			until(begin)
			bad.Store(true)
			time.Sleep(20 * D)
			if h := r.Health(); begins.Load() != 1 || ends.Load() != 0 || !errors.Is(h.Broken["feed"], errListing) || h.Storage != nil {
				t.Errorf("told %d times, its end %d times, and health is %+v", begins.Load(), ends.Load(), h)
			}
			bad.Store(false)
			time.Sleep(3 * D)
			if h := r.Health(); begins.Load() != 1 || ends.Load() != 1 || len(h.Broken) != 0 {
				t.Errorf("after it: told %d times, its end %d times, and health is %+v", begins.Load(), ends.Load(), h)
			}
			c.wantHeld(4, 2*D)
		})
	}
}
