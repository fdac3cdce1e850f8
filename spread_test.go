package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/nightly"
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

func letters(n int) (names []string) {
	for i := range n {
		names = append(names, string(rune('a'+i)))
	}
	return names
}

func TestShardsAreSpreadEvenly(t *testing.T) {
	for _, n := range []struct{ shards, replicas int }{{16, 5}, {16, 1}, {3, 5}, {7, 2}, {1, 3}, {40, 7}} {
		beside(t, fmt.Sprintf("%d over %d", n.shards, n.replicas), func(_ *testing.T, c *cluster) {
			names := letters(n.replicas)
			c.join(5*time.Second, feed(n.shards), names...)
			until(2 * D)
			c.wantEven(n.shards, names...)
			before := len(c.all())
			until(20 * D)
			c.wantEven(n.shards, names...)
			c.wantOneHolder()
			if moved := len(c.all()) - before; moved > 0 {
				c.t.Errorf("%d shards have moved while no replica came or went", moved)
			}
		})
	}
}

func TestShardsKnowWhichTheyAre(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.join(0, feed(4), "a")
		time.Sleep(D)
		var got []string
		for _, r := range c.all() {
			got = append(got, fmt.Sprint(r.Job, " is ", r.Shard, " of ", r.Shards))
		}
		slices.Sort(got)
		if want := []string{"feed-0 is 0 of 4", "feed-1 is 1 of 4", "feed-2 is 2 of 4", "feed-3 is 3 of 4"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
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
						until(9 * D)
						c.wantEven(n, tt.then...)
						c.wantOneHolder()
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
		"one joins":             {2, func(c *cluster, _ []*replica) { joins(c, "x") }, []string{"a", "b", "x"}},
		"one joins one":         {1, func(c *cluster, _ []*replica) { joins(c, "x") }, []string{"a", "x"}},
		"one joins four":        {4, func(c *cluster, _ []*replica) { joins(c, "x") }, []string{"a", "b", "c", "d", "x"}},
		"three join":            {3, func(c *cluster, _ []*replica) { joins(c, "x", "y", "z") }, []string{"a", "b", "c", "x", "y", "z"}},
		"one leaves":            {5, func(_ *cluster, rs []*replica) { go rs[0].stop() }, []string{"b", "c", "d", "e"}},
		"two leave":             {5, func(_ *cluster, rs []*replica) { go rs[1].stop(); go rs[0].stop() }, []string{"c", "d", "e"}},
		"all but one leave":     {3, func(_ *cluster, rs []*replica) { go rs[1].stop(); go rs[0].stop() }, []string{"c"}},
		"one dies":              {5, func(_ *cluster, rs []*replica) { rs[2].kill() }, []string{"a", "b", "d", "e"}},
		"two die":               {5, func(_ *cluster, rs []*replica) { rs[2].kill(); rs[4].kill() }, []string{"a", "b", "d"}},
		"all but one die":       {3, func(_ *cluster, rs []*replica) { rs[0].kill(); rs[1].kill() }, []string{"c"}},
		"one dies, two join":    {3, func(c *cluster, rs []*replica) { rs[0].kill(); joins(c, "x", "y") }, []string{"b", "c", "x", "y"}},
		"one leaves, one comes": {3, func(c *cluster, rs []*replica) { go rs[0].stop(); joins(c, "x") }, []string{"b", "c", "x"}},
	}
}

// A replica that has died has no part of the shards any more, once its member entry is free: the others
// have taken its shards for good.
func TestDeadReplicaHasNoPart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		rs := c.join(0, feed(9), "a", "b", "c")
		until(4 * D)
		rs[2].kill()
		until(7 * D)
		c.wantEven(9, "a", "b")
		begun := len(c.all())
		until(30 * D)
		c.wantEven(9, "a", "b")
		if moved := len(c.all()) - begun; moved > 0 {
			c.t.Errorf("%d shards have moved since, and no replica came or went", moved)
		}
	})
}

// A replica that would not acquire a shard does not follow its hand-over.
func TestHandOverIsFollowedByThoseThatWant(t *testing.T) {
	inCluster(t, func(c *cluster) {
		rs := c.join(8*time.Second, feed(6), "a", "b", "c")
		until(4 * D)
		for _, r := range rs {
			r.tap.counts()
		}
		if err := rs[0].StepDown(c.t.Context(), c.shardOf("a")); err != nil {
			c.t.Error(err)
		}
		for _, r := range rs[1:] {
			if n := r.tap.counts(); n["read"] > 20 {
				c.t.Errorf("%s has read %d times", r.Replica, n["read"])
			}
		}
	})
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
		if _, leased := c.memberEntries(); leased != 1 {
			c.t.Errorf("%d member entries are leased, want one", leased)
		}
		time.Sleep(4 * D)
		if _, leased := c.memberEntries(); leased != 2 {
			c.t.Errorf("%d member entries are leased, want two: the run has returned", leased)
		}
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
		if _, leased := c.memberEntries(); leased != 1 {
			c.t.Errorf("%d member entries are leased, want one", leased)
		}
		a.stop()
		time.Sleep(2 * D)
		if _, leased := c.memberEntries(); leased != 1 {
			c.t.Errorf("%d member entries are leased once the first Run is over, want one", leased)
		}
		c.wantEven(4, "a")
		cancel()
		<-done
		if _, leased := c.memberEntries(); leased != 0 {
			c.t.Errorf("%d member entries are leased in the end, want none", leased)
		}
	})
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

// Replicas come and go for ever: the entries of those that are gone serve the next ones.
func TestMemberEntriesAreUsedAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for i := range 10 {
			old, died := c.join(0, feed(4), fmt.Sprint("stopped-", i))[0], c.join(0, feed(4), fmt.Sprint("killed-", i))[0]
			time.Sleep(3 * D)
			if _, leased := c.memberEntries(); leased != 2 {
				t.Errorf("%d member entries are leased, want 2", leased)
			}
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
	refused := func(op string, apply func() error) error {
		if op == "acquire" {
			return store.ErrHeld
		}
		return apply()
	}
	inCase(t, "a member that holds nothing", func(_ *testing.T, c *cluster) {
		c.join(0, feed(6), "a", "b")
		time.Sleep(3 * D)
		idle := c.join(0, feed(6), "idle")[0]
		time.Sleep(D / 2) // it has joined
		idle.meets(refused)
		time.Sleep(6 * D)
		if held := c.shares(); held["a"]+held["b"]+held["idle"] != 6 {
			c.t.Errorf("the shards are held so: %v", held)
		}
		c.wantOneHolder()
	})
	inCase(t, "no listing", func(_ *testing.T, c *cluster) {
		for _, r := range c.join(0, feed(6), "a", "b") {
			r.meets(func(op string, apply func() error) error {
				if op == "list" {
					return context.DeadlineExceeded
				}
				return apply()
			})
		}
		time.Sleep(2 * D)
		if held := c.shares(); held["a"]+held["b"] != 6 {
			c.t.Errorf("the shards are held so: %v", held)
		}
	})
	inCase(t, "a store that lists nothing", func(_ *testing.T, c *cluster) {
		c.startAll(feed(6), "a", "b")
		time.Sleep(2 * D)
		if held := c.shares(); held["a"]+held["b"] != 6 {
			c.t.Errorf("the shards are held so: %v", held)
		}
		if names, _ := c.memberEntries(); len(names) > 0 {
			c.t.Errorf("there are member entries: %q", names)
		}
	})
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

// Two programs have different numbers of shards. Each shard goes on under the number that its holder
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
