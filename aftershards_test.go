package soloist_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A distant store lists, counts calls, and takes a moment for each reading. It gives no lease of the
// entries whose names begin with kept.
type distant struct {
	counter
	kept string
}

const distance = 10 * time.Millisecond

func (d *distant) Read(ctx context.Context, name string) (store.Entry, error) {
	if err := pause(ctx, distance); err != nil {
		return store.Entry{}, err
	}
	return d.counter.Read(ctx, name)
}

func (d *distant) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	if err := pause(ctx, distance); err != nil {
		return err
	}
	return d.counter.List(ctx, app, f)
}

func (d *distant) Lease(name, id string) store.Lease {
	if d.kept != "" && strings.HasPrefix(name, d.kept) {
		return heldLease{d.Memory.Lease(name, id)}
	}
	return d.Memory.Lease(name, id)
}

// inShards is a job of n shards.
func inShards(n int, job soloist.Job) soloist.Job {
	job.Shards = n
	return job
}

// far makes a replica over a distant store that is not started.
func (c *cluster) far(backend *distant, name string, work ...soloist.Work) *replica {
	backend.Memory = c.store
	r := c.replica(name, work...)
	r.Store = backend
	return r
}

// wantShards checks that each shard of a job has run its first tick, at most late after all shards of
// another one had ended.
func (c *cluster) wantShards(n int, job, before string, late time.Duration) {
	c.t.Helper()
	var last time.Time
	for i := range n {
		for _, r := range c.runsOf(fmt.Sprintf("%s-%d", before, i)) {
			if r.end.After(last) {
				last = r.end
			}
		}
	}
	for i := range n {
		name := fmt.Sprintf("%s-%d", job, i)
		runs := c.runsOf(name)
		if len(runs) != 1 {
			c.t.Errorf("%s has %d runs, want 1", name, len(runs))
			continue
		}
		if start := runs[0].start; start.Before(last) || start.Sub(last) > late {
			c.t.Errorf("%s starts at %s, and the last shard of %s ended at %s", name, start.Format("15:04:05.000"), before, last.Format("15:04:05.000"))
		}
	}
}

// Each shard of a follower waits for all shards of the job before it. The shards of the follower look
// together, and none reads what this replica does itself.
func TestShardsFollowShards(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const n = 16
		report, backend := inShards(n, following("report", "import", time.Second)), &distant{}
		imports := named("import", doing("0 1 * * *", func(ctx context.Context, r *soloist.Run) error {
			return pause(ctx, time.Duration(1+r.Shard)*10*time.Second)
		}))
		c.launch(c.far(backend, "a", inShards(n, imports), report))
		until(time.Hour - 10*time.Second)
		backend.reads.Store(0)
		backend.lists.Store(0)
		until(time.Hour + 5*time.Minute)
		c.wantShards(n, "report", "import", time.Second)
		if reads, lists := backend.reads.Load(), backend.lists.Load(); reads > 2*n || lists > 15 {
			t.Errorf("%d reads and %d listings for one tick", reads, lists)
		}
	})
}

// Another replica, which runs none of the shards, learns their ends by listings.
func TestShardsFollowShardsOfAnotherReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const n = 16
		report, backend := inShards(n, following("report", "import", time.Second)), &distant{kept: "soloist/import-"}
		imports := inShards(n, importing("0 1 * * *", time.Minute))
		c.start("a", imports)
		until(time.Minute)
		c.launch(c.far(backend, "b", imports, report))
		until(time.Hour - 10*time.Second)
		backend.reads.Store(0)
		backend.lists.Store(0)
		until(time.Hour + 3*time.Minute)
		c.wantShards(n, "report", "import", 10*time.Second)
		if reads, lists := backend.reads.Load(), backend.lists.Load(); reads > 2*n || lists > 60 {
			t.Errorf("%d reads and %d listings for one tick", reads, lists)
		}
	})
}

// The replica that ends the last of the shards starts the follower at once, also if others have run the
// rest: it reads that once more when it has none left itself.
func TestFollowerOfShardsOfTwoReplicasStartsAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const n = 4
		imports := inShards(n, named("import", doing("*/10 * * * *", func(ctx context.Context, r *soloist.Run) error {
			return pause(ctx, 5*time.Minute+time.Duration(r.Shard)*700*time.Millisecond)
		})))
		for _, name := range []string{"a", "b"} {
			c.start(name, imports, following("report", "import", time.Second))
		}
		until(9 * time.Minute)
		for range 12 {
			time.Sleep(10 * time.Minute)
			tick, last, by := time.Now().Truncate(10*time.Minute), ran{}, map[string]int{}
			for _, r := range c.all() {
				if r.Job != "report" && r.Tick.Equal(tick) {
					if by[r.replica]++; r.end.After(last.end) {
						last = r
					}
				}
			}
			runs := c.runsOf("report")
			if r := runs[len(runs)-1]; !r.Tick.Equal(tick) || r.start.Sub(last.end) > 200*time.Millisecond {
				t.Errorf("report starts for %s on %s at %s, and the last shard ended on %s at %s; runs by replica: %v", r.Tick.Format(time.TimeOnly), r.replica,
					r.start.Format("15:04:05.000"), last.replica, last.end.Format("15:04:05.000"), by)
			}
		}
	})
}

// However many shards a job has, its follower reads them at once: none is late for the others, and the
// store does not count as out of reach.
func TestFollowerOfManyShards(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		const n = 256
		imports := inShards(n, named("import", doing("0 1 * * *", func(ctx context.Context, r *soloist.Run) error {
			return pause(ctx, 10*time.Second+time.Duration(r.Shard)*50*time.Millisecond)
		})))
		c.start("a", imports)
		until(time.Minute)
		b := c.far(&distant{kept: "soloist/import-"}, "b", imports, following("report", "import", time.Second))
		c.launch(b)
		for until(time.Hour); sinceMidnight() < time.Hour+time.Minute; time.Sleep(100 * time.Millisecond) {
			if err := b.Health().Storage; err != nil {
				t.Fatalf("at %s the store is out of reach: %v", time.Now().Format(time.TimeOnly), err)
			}
		}
		c.wantOutcomes("report", "succeeded 01:00:00")
		c.wantFollowed("report", "import-255", 4*time.Second)
	})
}

// A shard that is new has no outcome of a tick that waits already: docs/after.md says so.
func TestFollowerOfAChangedNumberOfShards(t *testing.T) {
	for after, want := range map[int]string{6: "missed 00:10:00 the outcome of import-4 is not known", 2: "succeeded 00:10:00"} {
		inCase(t, fmt.Sprint(after), func(t *testing.T, c *cluster) {
			imports, report := importing("*/10 * * * *", time.Minute), following("report", "import", time.Second)
			old := c.launch(c.far(&distant{kept: "soloist/report"}, "old", inShards(4, imports), report))
			until(15 * time.Minute)
			old.stop()
			c.start("new", inShards(after, imports), report)
			until(19 * time.Minute)
			c.wantOutcomes("report", "missed 00:00:00-00:09:59 the schedule changed", want)
		})
	}
}
