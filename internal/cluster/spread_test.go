package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A listingTap is a tap of a store that lists.
type listingTap struct{ *tap }

func (s listingTap) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return s.through(ctx, "list", func() error { return s.Store.(store.Lister).List(ctx, app, f) })
}

// feed is a singleton of n shards.
func feed(n int) soloist.Singleton {
	s := lead("feed")
	s.Shards = n
	return s
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
		for pause(ctx, D/2) == nil {
			_ = run.Heartbeat("")
		}
		return ctx.Err()
	}
	return s
}

// join starts replicas that spread their shards.
func (c *cluster) join(grace time.Duration, work soloist.Work, names ...string) (all []*replica) {
	for _, name := range names {
		r := c.replica(name, work)
		r.Grace, r.Store = grace, listingTap{r.tap}
		all = append(all, c.launch(r))
	}
	return all
}

// shares returns how many shards of a singleton each replica does now.
func (c *cluster) shares() map[string]int {
	n := map[string]int{}
	for _, r := range c.all() {
		if r.end.IsZero() {
			n[r.replica]++
		}
	}
	return n
}

// shardOf returns a shard that a replica does now.
func (c *cluster) shardOf(replica string) string {
	c.t.Helper()
	for _, r := range c.all() {
		if r.replica == replica && r.end.IsZero() {
			return r.Job
		}
	}
	c.t.Fatalf("%s holds no shard: %v", replica, c.shares())
	return ""
}

// wantEven checks that the shards are held by these replicas, evenly.
func (c *cluster) wantEven(shards int, names ...string) {
	c.t.Helper()
	held := c.shares()
	least, most, sum := shards, 0, 0
	for _, name := range names {
		n := held[name]
		least, most, sum = min(least, n), max(most, n), sum+n
	}
	if sum != shards || most-least > 1 {
		c.t.Errorf("after %s the shards are held so: %v, want %d spread over %q", sinceMidnight(), held, shards, names)
	}
}

// wantOneHolder checks that no shard was ever held twice, and that each was held in the end.
func (c *cluster) wantOneHolder() {
	c.t.Helper()
	last := map[string]ran{}
	for _, r := range c.all() {
		if before, ok := last[r.Job]; ok && (before.end.IsZero() || before.end.After(r.start)) {
			c.t.Errorf("%s of %s began at %s, and that of %s ended at %s", r.Job, r.replica, r.start, before.replica, before.end)
		}
		last[r.Job] = r
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

// letters returns the names of n replicas.
func letters(n int) (names []string) {
	for i := range n {
		names = append(names, string(rune('a'+i)))
	}
	return names
}

// memberEntries returns the member entries in the store, and how many of them are leased.
func (c *cluster) memberEntries() (names []string, leased int) {
	err := c.store.List(c.t.Context(), "soloist", func(name string, e store.Entry) bool {
		if strings.HasPrefix(name, "soloist/0-member-") {
			names = append(names, name)
			if e.State.Live() {
				leased++
			}
		}
		return true
	})
	if err != nil {
		c.t.Error(err)
	}
	return names, leased
}

// wantMembers checks how many member entries are leased.
func (c *cluster) wantMembers(want int) {
	c.t.Helper()
	if _, leased := c.memberEntries(); leased != want {
		c.t.Errorf("%d member entries are leased, want %d", leased, want)
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

// However replicas come and go, the spread is even within two leases, and no shard is held twice. Few
// shards are followed by reads, many by listings.
func TestSpreadFollowsTheReplicas(t *testing.T) {
	phases := []time.Duration{0, D / 4, D / 2, 3 * D / 4}
	if !nightly.Runs() {
		phases = phases[1:2]
	}
	for _, n := range []int{8, 16} {
		for _, grace := range []time.Duration{0, 7 * time.Second} {
			for name, tt := range changes(feed(n), grace) {
				for _, after := range phases {
					beside(t, fmt.Sprintf("%d shards, %s, grace %s, phase %s", n, name, grace, after), func(_ *testing.T, c *cluster) {
						rs := c.join(grace, feed(n), letters(tt.first)...)
						until(5*D + after)
						tt.change(c, rs)
						until(7*D + after + time.Second)
						c.wantEven(n, tt.then...)
						begun := len(c.all())
						until(12 * D)
						c.wantEven(n, tt.then...)
						c.wantOneHolder()
						if moved := len(c.all()) - begun; moved > 0 {
							c.t.Errorf("%d shards have moved since", moved)
						}
					})
				}
			}
		}
	}
}

// A change is that of the replicas that are up.
type change struct {
	first  int // how many there are before it
	change func(c *cluster, rs []*replica)
	then   []string // are up
}

func changes(work soloist.Singleton, grace time.Duration) map[string]change {
	joins := func(c *cluster, names ...string) { c.join(grace, work, names...) }
	return map[string]change{
		"one joins one":         {1, func(c *cluster, _ []*replica) { joins(c, "x") }, []string{"a", "x"}},
		"three join":            {3, func(c *cluster, _ []*replica) { joins(c, "x", "y", "z") }, []string{"a", "b", "c", "x", "y", "z"}},
		"two leave":             {5, func(_ *cluster, rs []*replica) { go rs[1].stop(); go rs[0].stop() }, []string{"c", "d", "e"}},
		"two die":               {5, func(_ *cluster, rs []*replica) { rs[2].kill(); rs[4].kill() }, []string{"a", "b", "d"}},
		"all but one die":       {3, func(_ *cluster, rs []*replica) { rs[0].kill(); rs[1].kill() }, []string{"c"}},
		"one dies, two join":    {3, func(c *cluster, rs []*replica) { rs[0].kill(); joins(c, "x", "y") }, []string{"b", "c", "x", "y"}},
		"one leaves, one comes": {3, func(c *cluster, rs []*replica) { go rs[0].stop(); joins(c, "x") }, []string{"b", "c", "x"}},
	}
}

// A replica that takes nothing new is none to count on.
func TestOverrunReplicaIsNoMember(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := feed(4)
		deaf.Do = func(ctx context.Context, _ *soloist.Run) error {
			if <-ctx.Done(); errors.Is(context.Cause(ctx), soloist.ErrLost) {
				time.Sleep(4 * D)
			}
			return ctx.Err()
		}
		c.join(0, feed(4), "a")
		c.join(0, deaf, "deaf")
		until(4 * D)
		if err := c.store.Break(c.t.Context(), "soloist/"+c.shardOf("deaf"), 0); err != nil {
			c.t.Fatal(err)
		}
		time.Sleep(2 * D)
		c.wantMembers(1)
		time.Sleep(4 * D)
		c.wantMembers(2) // the run has returned
	})
}

// A second Run of a scheduler waits for the first one: the replica is one member.
func TestSecondRunIsNoSecondMember(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.join(0, feed(4), "a")[0]
		ctx, cancel := context.WithCancel(c.t.Context())
		done := make(chan struct{})
		go func() { _ = a.Run(ctx); close(done) }()
		until(2 * D)
		c.wantMembers(1)
		a.stop()
		time.Sleep(2 * D)
		c.wantMembers(1)
		c.wantEven(4, "a")
		cancel()
		<-done
		c.wantMembers(0)
	})
}

// Replicas come and go for ever: the entries of those that are gone serve the next ones.
func TestMemberEntriesAreUsedAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for i := range 10 {
			old, died := c.join(0, feed(4), fmt.Sprint("stopped-", i))[0], c.join(0, feed(4), fmt.Sprint("killed-", i))[0]
			time.Sleep(3 * D)
			c.wantMembers(2)
			old.stop()
			died.kill()
			time.Sleep(2 * D)
		}
		if names, leased := c.memberEntries(); len(names) > 4 || leased != 0 {
			t.Errorf("there are %d member entries, %d of them leased: want 4 at most and none", len(names), leased)
		}
	})
}

// What keeps a replica that is up from taking its part keeps no shard from being held.
func TestNoShardIsLeftAlone(t *testing.T) {
	for name, idle := range map[string]bool{"a member that holds nothing": true, "a store that lists nothing": false} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			if idle {
				c.join(0, feed(6), "a", "b")
				until(3 * D)
				idle := c.join(0, feed(6), "idle")[0]
				time.Sleep(D / 2) // it has joined
				idle.meets(fail(store.ErrHeld, "acquire"))
			} else {
				c.startAll(feed(6), "a", "b")
			}
			until(9 * D)
			if held := c.shares(); held["a"]+held["b"]+held["idle"] != 6 {
				c.t.Errorf("the shards are held so: %v", held)
			}
			if names, _ := c.memberEntries(); len(names) > 0 != idle {
				c.t.Errorf("there are the member entries %q", names)
			}
			c.wantOneHolder()
		})
	}
}

// While nothing happens, a replica renews what it holds and its membership, three times in a lease
// each, and lists. Few shards of other replicas are read as well, three times in a lease each; many
// are listed more often instead.
func TestSpreadCosts(t *testing.T) {
	for _, tt := range []struct{ shards, list, read int }{{4, 1, 3 * 2}, {24, 3, 0}} {
		inCase(t, fmt.Sprint(tt.shards, " shards"), func(t *testing.T, c *cluster) {
			rs := c.join(0, feed(tt.shards), "a", "b")
			time.Sleep(8 * D)
			for _, r := range rs {
				r.tap.counts()
			}
			const leases = 40
			time.Sleep(leases * D)
			for _, r := range rs {
				n := r.tap.counts()
				renewed := 3 * (tt.shards/2 + 1)
				if n["write"]+n["acquire"]+n["create"] > 0 || !near(n["list"], leases*tt.list) || !near(n["read"], leases*tt.read) || !near(n["renew"], leases*renewed) {
					t.Errorf("%s made these calls in %d leases: %v; want in each %d listings, %d reads and %d renewals", r.Replica, leases, n, tt.list, tt.read, renewed)
				}
			}
		})
	}
}

// near reports whether a count is about what is wanted: jitter makes it larger, and so do listings in
// place of reads once a minute.
func near(got, want int) bool { return got >= want*9/10 && got <= want*13/10+1 }

// A replica that has handed shards over since another one came takes them back at once if that one dies: its tasks have not
// failed, so that their Backoff does not count.
func TestHandOverIsNoFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := ailing(8, 10*time.Minute, nil)
		c.join(0, work, "a")
		until(5 * D)
		b := c.join(0, work, "b")[0]
		time.Sleep(5 * D / 2)
		c.wantEven(8, "a", "b")
		b.kill()
		time.Sleep(2 * D)
		if n := c.count(func(r ran) bool { return r.replica == "a" && r.end.IsZero() }); n != 8 {
			c.t.Errorf("a holds %d shards two leases after b has died, want all", n)
		}
	})
}

// A shard whose lease was lost has not failed: its Backoff does not count, as if it had been handed over.
func TestLostLeaseOfShardIsNoFailure(t *testing.T) {
	inCluster(t, func(c *cluster) { // a breaking lease is not renewed, and the outcome can still be written
		c.join(0, ailing(2, 10*time.Minute, nil), "a")
		until(2 * D)
		if err := c.store.Break(c.t.Context(), "soloist/feed-0", D); err != nil {
			c.t.Fatal(err)
		}
		until(8 * D)
		c.wantHeld(2, 3*D)
		c.wantEven(2, "a")
	})
}

// A replica whose lease is lost before it has run anything does not rest.
func TestLeaseLostInHoldOffIsNoRest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := lead("feed")
		work.Backoff = 10 * time.Minute
		remove := func() {
			_ = c.store.Break(context.Background(), "soloist/feed", 0)
			if err := c.store.Delete(context.Background(), "soloist/feed"); err != nil {
				c.t.Fatal(err)
			}
		}
		a := c.start("a", work)
		time.Sleep(D / 2)
		c.start("b", work)
		time.Sleep(D / 2)
		a.kill()
		remove()
		for e := (store.Entry{}); e.State != store.Leased; { // b holds off under the lease on a new entry
			time.Sleep(time.Second)
			e, _ = c.store.Read(context.Background(), "soloist/feed")
		}
		remove()
		time.Sleep(4 * D)
		if n := len(ranBy(c, "b", time.Time{})); n != 1 {
			c.t.Errorf("b has run %d times, want once: its first lease was lost before it ran", n)
		}
	})
}

// A task that returns once has its shard moved. No shard waits for the end of a Backoff, however long.
func TestShardIsHeldWhileOneReplicaRests(t *testing.T) {
	for _, tt := range []struct {
		shards, replicas int
		err              error
	}{{2, 2, errors.New("once")}, {6, 3, errors.New("once")}, {2, 2, nil}} {
		inCase(t, fmt.Sprintf("%d over %d, %v", tt.shards, tt.replicas, tt.err), func(_ *testing.T, c *cluster) {
			work := feed(tt.shards)
			work.Backoff = 30 * time.Minute
			work.Do = func(ctx context.Context, run *soloist.Run) error {
				if run.Shard == 0 && sinceMidnight() < 4*D {
					_ = pause(ctx, 4*D-sinceMidnight())
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
	for name, after := range map[string]time.Duration{"stalls": time.Hour, "fails": 0, "fails later": 4 * time.Second} {
		for _, tt := range []struct{ shards, replicas int }{{1, 2}, {6, 3}, {16, 2}} {
			beside(t, fmt.Sprintf("%s, %d over %d", name, tt.shards, tt.replicas), func(_ *testing.T, c *cluster) {
				names, sick := letters(tt.replicas), ""
				for _, name := range names {
					c.join(0, ailing(tt.shards, 0, func(ctx context.Context, run *soloist.Run) error {
						if run.Shard > 0 {
							return nil
						}
						for sick == "" && pause(ctx, min(D/2, 4*D-sinceMidnight())) == nil { // all is well for some leases
							_ = run.Heartbeat("")
							if sinceMidnight() >= 4*D {
								sick = name
							}
						}
						if sick != name || pause(ctx, after) != nil {
							return ctx.Err()
						}
						return errors.New("not here")
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
			c.wantEven(4, "a")
			if h := r.Health(); begins.Load() != 1 || ends.Load() != 0 || !errors.Is(h.Broken["feed"], errListing) || h.Storage != nil {
				t.Errorf("told %d times, its end %d times, and health is %+v", begins.Load(), ends.Load(), h)
			}
			bad.Store(false)
			time.Sleep(3 * D)
			c.wantEven(4, "a")
			if h := r.Health(); begins.Load() != 1 || ends.Load() != 1 || len(h.Broken) != 0 {
				t.Errorf("after it: told %d times, its end %d times, and health is %+v", begins.Load(), ends.Load(), h)
			}
			c.wantHeld(4, 2*D)
		})
	}
}

// timesByID returns how often each tick of each shard was run.
func timesByID(runs []ran) map[string]int {
	times := map[string]int{}
	for _, r := range runs {
		times[r.ID()]++
	}
	return times
}

// Each shard of each tick is run once, and the replicas share the shards.
func TestEachShardOfEachTickRunsOnce(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		inCase(t, fmt.Sprintf("claimed ahead: %t", ahead), func(t *testing.T, c *cluster) {
			job := inShards(8, work("@every 20s", 3*time.Second))
			job.ClaimAhead = ahead
			c.startAll(job, "a", "b", "c")
			time.Sleep(5*time.Minute + 10*time.Second)
			by := map[string]int{}
			for _, r := range c.all() {
				if r.Shards != 8 || r.Job != fmt.Sprintf("work-%d", r.Shard) || !strings.HasPrefix(r.ID(), r.Job+"@") {
					t.Fatalf("%s is shard %d of %d, with the id %s", r.Job, r.Shard, r.Shards, r.ID())
				}
				by[r.replica]++
			}
			if n := len(timesByID(c.all())); n != 15*8 || len(c.all()) != n {
				t.Errorf("%d runs of %d claims, want 8 of each of 15 ticks", len(c.all()), n)
			}
			if min(by["a"], by["b"], by["c"]) < 15*8/6 {
				t.Errorf("the replicas share the work so: %v", by)
			}
		})
	}
}

// What names a job names a shard, which has an outcome and a status of its own; the name of the whole is a clear error where
// one job is meant.
func TestShardIsOrderedByItsName(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", inShards(4, doing("@every 10s", func(_ context.Context, run *soloist.Run) error {
			if run.Shard == 2 {
				return errors.New("no part")
			}
			return nil
		})))
		time.Sleep(5 * time.Second)
		_, err := a.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderPause, Job: "work-1"})
		c.ok(err)
		time.Sleep(30 * time.Second)
		all, err := a.Status(c.t.Context())
		if err != nil || len(all) != 4 {
			t.Fatalf("%d statuses, %v", len(all), err)
		}
		for i, want := range []event.Status{event.Succeeded, record.Idle, event.Failed, event.Succeeded} {
			name, st := fmt.Sprint("work-", i), all[i]
			if r := c.record(name); r.Run.Status != want || st.Name != name || st.Shard != i || st.Shards != 4 {
				t.Errorf("%s is %s, want %s; its status is that of %s, shard %d of %d", name, r.Run.Status, want, st.Name, st.Shard, st.Shards)
			}
		}
		_, err = a.RunNow(c.t.Context(), "work-1", "by-hand")
		c.ok(err)
		if r := c.runsOf("work-1"); len(r) != 1 || r[0].ID() != "work-1@by-hand" {
			t.Errorf("of the paused shard these ran: %+v", r)
		}
		const want = "work is split into shards, work-0 to work-3: name one of them"
		_, err = a.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderPause, Job: "work"})
		wantError(t, err, want)
		_, err = a.RunNow(c.t.Context(), "work", "x")
		wantError(t, err, want)
		wantError(t, a.StepDown(c.t.Context(), "work"), want)
		wantError(t, a.Unlock(c.t.Context(), "work", false), want)
		_, err = a.RunNow(c.t.Context(), "work-4", "x")
		wantError(t, err, `there is no job or singleton "work-4"`)
	})
}

// A wake-up may name jobs, each with all its shards, or a shard.
func TestWakeOfSomeJobs(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", inShards(4, work("@every 10s", 0)), named("other", work("@every 10s", 0)), leader())
		a.wake()
		ran := 0
		for _, tt := range []struct {
			name string
			jobs int
		}{{"work", 4}, {"work-2", 1}, {"other", 1}} {
			time.Sleep(10 * time.Second)
			report, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{tt.name}, Tick: time.Now()})
			if ran += tt.jobs; err != nil || len(report.Jobs) != tt.jobs || len(c.all()) != ran {
				t.Errorf("%s: %d runs, %+v, %v", tt.name, len(c.all()), report, err)
			}
		}
		if r := c.runsOf("other"); len(r) != 1 || r[0].Shard != 0 || r[0].Shards != 1 {
			t.Errorf("a job without shards is run as %+v", r)
		}
		for _, name := range []string{"nobody", "lead"} {
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{name}}); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
	})
}

// Programs with two numbers of shards are up at once. The shards that both have are those of the
// younger program. Those that it does not have go on in the old one, until that is gone.
func TestChangedNumberOfShards(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after int
		beside, then  string // the shards that run, each of how many
	}{
		"more":  {2, 4, "0/4 1/4 2/4 3/4", "0/4 1/4 2/4 3/4"},
		"fewer": {4, 2, "0/2 1/2 2/4 3/4", "0/2 1/2"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			want := func(since time.Duration, want string) {
				t.Helper()
				ran := map[string]bool{}
				for _, r := range c.all() {
					if r.start.Sub(time.Now().Add(-since)) > 0 {
						ran[fmt.Sprintf("%d/%d", r.Shard, r.Shards)] = true
					}
				}
				if got := strings.Join(slices.Sorted(maps.Keys(ran)), " "); got != want {
					t.Errorf("%s run, want %s", got, want)
				}
			}
			old := c.start("old", inShards(tt.before, work("@every 10s", time.Second)))
			time.Sleep(25 * time.Second)
			c.start("young", inShards(tt.after, work("@every 10s", time.Second)))
			time.Sleep(30 * time.Second)
			want(20*time.Second, tt.beside)
			old.stop()
			time.Sleep(30 * time.Second)
			want(30*time.Second, tt.then)
			for id, times := range timesByID(c.all()) {
				if times > 1 {
					t.Errorf("%s ran %d times", id, times)
				}
			}
		})
	}
}

// Each shard of a singleton goes on under the number that its holder
// knows, until that holder is gone.
func TestShardsOfTwoNumbersSideBySide(t *testing.T) {
	for name, n := range map[string]struct{ before, after int }{"more": {4, 8}, "fewer": {8, 4}} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			old := c.join(5*time.Second, feed(n.before), "a", "b")
			time.Sleep(3 * D)
			c.join(5*time.Second, feed(n.after), "x", "y")
			time.Sleep(3 * D)
			for _, r := range c.all() {
				if r.end.IsZero() && r.Shard < n.before && r.Shards != n.before {
					c.t.Errorf("%s is now one of %d, while its holder is up", r.Job, r.Shards)
				}
			}
			for _, r := range old {
				r.stop()
			}
			time.Sleep(2 * D)
			c.wantEven(n.after, "x", "y")
			c.wantOneHolder()
		})
	}
}
