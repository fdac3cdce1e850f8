package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

// sharded is a job of n shards that takes d.
func sharded(n int, schedule string, d time.Duration) soloist.Job {
	j := work(schedule, d)
	j.Shards = n
	return j
}

// Each shard of each tick is run once, and the replicas share the shards.
func TestEachShardOfEachTickRunsOnce(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		inCase(t, fmt.Sprintf("claimed ahead: %t", ahead), func(t *testing.T, c *cluster) {
			job := sharded(8, "@every 20s", 3*time.Second)
			job.ClaimAhead = ahead
			c.startAll(job, "a", "b", "c")
			time.Sleep(5*time.Minute + 10*time.Second)
			times, by := map[string]int{}, map[string]int{}
			for _, r := range c.all() {
				if r.Shards != 8 || r.Job != fmt.Sprintf("work-%d", r.Shard) || !strings.HasPrefix(r.ID(), r.Job+"@") {
					t.Fatalf("%s is shard %d of %d, with the id %s", r.Job, r.Shard, r.Shards, r.ID())
				}
				times[r.ID()]++
				by[r.replica]++
			}
			for id, n := range times {
				if n > 1 {
					t.Errorf("%s ran %d times", id, n)
				}
			}
			if len(times) != 15*8 {
				t.Errorf("%d claims of 15 ticks, want 8 of each", len(times))
			}
			for _, name := range letters(3) {
				if by[name] < 15*8/6 {
					t.Errorf("the replicas share the work so: %v", by)
				}
			}
		})
	}
}

func TestJobWithoutShardsIsOneOfOne(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("@every 10s", 0))
		time.Sleep(15 * time.Second)
		if runs := c.all(); len(runs) != 1 || runs[0].Shard != 0 || runs[0].Shards != 1 || runs[0].Job != "work" {
			t.Errorf("got %+v", runs)
		}
	})
}

// A shard that fails, or whose runner dies, has an outcome of its own.
func TestShardsHaveOutcomesOfTheirOwn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := sharded(3, "@every 10s", 0)
		job.Do = func(_ context.Context, run *soloist.Run) error {
			if run.Shard == 1 {
				return fmt.Errorf("no part %d of %d", run.Shard, run.Shards)
			}
			return nil
		}
		a := c.start("a", job)
		time.Sleep(15 * time.Second)
		for i, want := range []store.Status{store.Succeeded, store.Failed, store.Succeeded} {
			if r := c.record(fmt.Sprint("work-", i)); r.Run.Status != want {
				t.Errorf("work-%d is %s, want %s", i, r.Run.Status, want)
			}
		}
		all, err := a.Status(c.t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("%d statuses, %v", len(all), err)
		}
		for i, st := range all {
			if st.Name != fmt.Sprint("work-", i) || st.Shard != i || st.Shards != 3 {
				t.Errorf("status %d is of %s, shard %d of %d", i, st.Name, st.Shard, st.Shards)
			}
		}
	})
}

// What names a job names a shard; the name of the whole is a clear error where one job is meant.
func TestShardIsOrderedByItsName(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", sharded(3, "@every 10s", 0))
		time.Sleep(5 * time.Second)
		if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work-1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if _, err := a.RunNow(c.t.Context(), "work-1", "by-hand"); err != nil {
			t.Error(err)
		}
		var ids []string
		for _, r := range c.all() {
			if r.Shard == 1 {
				ids = append(ids, r.ID())
			}
		}
		if !slices.Equal(ids, []string{"work-1@by-hand"}) {
			t.Errorf("of the paused shard these ran: %q", ids)
		}
		const want = "work is split into shards, work-0 to work-2: name one of them"
		_, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		wantError(t, err, want)
		_, err = a.RunNow(c.t.Context(), "work", "x")
		wantError(t, err, want)
		wantError(t, a.StepDown(c.t.Context(), "work"), want)
		wantError(t, a.Unlock(c.t.Context(), "work", false), want)
		_, err = a.RunNow(c.t.Context(), "work-3", "x")
		wantError(t, err, `there is no job or singleton "work-3"`)
	})
}

// A timer of a platform names the job, and the call does what is due of all its shards.
func TestWakeOfJobDoesAllItsShards(t *testing.T) {
	inCluster(t, func(c *cluster) {
		other := work("@every 10s", 0)
		other.Name = "other"
		a := c.replica("a", sharded(4, "@every 10s", 0), other)
		a.wake()
		time.Sleep(10 * time.Second)
		report, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"work"}, Tick: time.Now()})
		if err != nil || len(report.Jobs) != 4 || len(c.all()) != 4 {
			t.Errorf("%d runs, %+v, %v", len(c.all()), report, err)
		}
		time.Sleep(10 * time.Second)
		report, err = a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"work-2"}})
		if err != nil || len(report.Jobs) != 1 || len(c.all()) != 5 {
			t.Errorf("%d runs, %+v, %v", len(c.all()), report, err)
		}
	})
}

// Programs with two numbers of shards are up at once. The shards that both have are those of the
// younger program. Those that it does not have go on in the old one, until that is gone.
func TestChangedNumberOfShards(t *testing.T) {
	for name, n := range map[string]struct{ before, after int }{"more": {2, 4}, "fewer": {4, 2}} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			old := c.start("old", sharded(n.before, "@every 10s", time.Second))
			time.Sleep(25 * time.Second)
			c.start("young", sharded(n.after, "@every 10s", time.Second))
			time.Sleep(30 * time.Second)
			side := time.Now()
			wantRuns(t, c, side.Add(-20*time.Second), min(n.before, n.after), max(n.before, n.after), n.after)
			old.stop()
			stopped := time.Now()
			time.Sleep(30 * time.Second)
			wantRuns(t, c, stopped, n.after, n.after, n.after)
			for id, times := range timesByID(c.all()) {
				if times > 1 {
					t.Errorf("%s ran %d times", id, times)
				}
			}
		})
	}
}

// wantRuns checks that since a time the shards up to common are run as those of the program with
// young shards, and all up to last are run by some program.
func wantRuns(t *testing.T, c *cluster, since time.Time, common, last, young int) {
	t.Helper()
	ran := map[int]bool{}
	for _, r := range c.all() {
		if !r.start.After(since) {
			continue
		}
		ran[r.Shard] = true
		if r.Shard < common && r.Shards != young {
			t.Errorf("%s is run by %s as one of %d, want %d", r.ID(), r.replica, r.Shards, young)
		}
	}
	for i := range last {
		if !ran[i] {
			t.Errorf("shard %d is not run", i)
		}
	}
	if len(ran) != last {
		t.Errorf("%d shards are run, want %d", len(ran), last)
	}
}

func timesByID(runs []ran) map[string]int {
	times := map[string]int{}
	for _, r := range runs {
		times[r.ID()]++
	}
	return times
}

// The old program is deployed again: it is the younger one then, and its number counts.
func TestNumberOfShardsIsTakenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("first", sharded(2, "@every 10s", time.Second))
		time.Sleep(25 * time.Second)
		c.start("second", sharded(4, "@every 10s", time.Second)).stop()
		c.start("third", sharded(2, "@every 10s", time.Second))
		time.Sleep(30 * time.Second)
		wantRuns(t, c, time.Now().Add(-15*time.Second), 2, 2, 2)
	})
}

func TestShardsAreChecked(t *testing.T) {
	long := strings.Repeat("x", 62)
	for want, s := range map[string]*soloist.Scheduler{
		`job "work": Shards is -1: allowed is 0 to 256`:                                                        {Jobs: []soloist.Job{sharded(-1, "@hourly", 0)}},
		`job "work": Shards is 257: allowed is 0 to 256`:                                                       {Jobs: []soloist.Job{sharded(257, "@hourly", 0)}},
		`singleton "feed": Shards is 1000000: allowed is 0 to 256`:                                             {Singletons: []soloist.Singleton{feed(1000000)}},
		`the name of its last shard, "` + long + `-0", is 64 characters long: allowed are 63, so shorten Name`: {Jobs: []soloist.Job{{Name: long, Schedule: "@hourly", Do: nothing, Shards: 1}}},
		`the name "work-3" is used more than once: a shard of "work" has it, too`: {Jobs: []soloist.Job{sharded(4, "@hourly", 0),
			{Name: "work-3", Schedule: "@hourly", Do: nothing}, {Name: "work-4", Schedule: "@hourly", Do: nothing}}},
		`the name "feed-0" is used more than once: a shard of "feed" has it, too`: {Singletons: []soloist.Singleton{feed(1)},
			Jobs: []soloist.Job{{Name: "feed-0", Schedule: "@hourly", Do: nothing, Shards: 2}}},
		`the name "feed" is used more than once`:                                    {Singletons: []soloist.Singleton{feed(2)}, Jobs: []soloist.Job{{Name: "feed", Schedule: "@hourly", Do: nothing}}},
		`job "here": FinishBy is 1h0m0s: allowed is zero for a job of EveryReplica`: {Jobs: []soloist.Job{{Name: "here", Schedule: "@hourly", Do: nothing, EveryReplica: true, FinishBy: time.Hour}}},
		`job "here": Shards is 2: allowed is zero for a job of EveryReplica`:        {Jobs: []soloist.Job{{Name: "here", Schedule: "@hourly", Do: nothing, EveryReplica: true, Shards: 2}}},
		`job "work": Schedule is "never"`:                                           {Jobs: []soloist.Job{sharded(16, "never", 0)}},
	} {
		s.Store = &local.Memory{}
		err := s.Validate()
		if wantError(t, err, want); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("one mistake is told more than once: %v", err)
		}
	}
	ok := &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{sharded(256, "@hourly", 0)}, Singletons: []soloist.Singleton{feed(256)}}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}

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
