package soloist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// following is a job that follows others, which runs for d.
func following(name, after string, d time.Duration) soloist.Job {
	j := named(name, work("", d))
	j.After = after
	return j
}

// importing is the job that others follow, which runs for d.
func importing(schedule string, d time.Duration) soloist.Job {
	return named("import", work(schedule, d))
}

// inShards is a job of n shards.
func inShards(n int, job soloist.Job) soloist.Job {
	job.Shards = n
	return job
}

// runsOf returns the runs of a job, or of all its shards.
func (c *cluster) runsOf(job string) (runs []ran) {
	for _, r := range c.all() {
		if r.Job == job || r.Shards > 1 && strings.HasPrefix(r.Job, job+"-") {
			runs = append(runs, r)
		}
	}
	return runs
}

// wantFollowed checks that each run of a job began after the end of the last run of another one, or of all its shards,
// for its tick, by at most late.
func (c *cluster) wantFollowed(job, before string, late time.Duration) {
	c.t.Helper()
	ends := map[time.Time]time.Time{}
	for _, r := range c.runsOf(before) {
		if r.end.IsZero() || r.end.After(ends[r.Tick]) {
			ends[r.Tick] = r.end
		}
	}
	const clock = "15:04:05.000"
	for _, r := range c.runsOf(job) {
		if end := ends[r.Tick]; end.IsZero() || r.start.Before(end) || r.start.Sub(end) > late {
			c.t.Errorf("%s starts for %s at %s, and %s ended at %s", r.Job, r.Tick.Format(time.TimeOnly), r.start.Format(clock), before, end.Format(clock))
		}
	}
}

var errImport = errors.New("no data")

// Of a diamond the last job waits for both sides, however long each takes. What fails is followed by none but AfterAny.
func TestFollowers(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("*/10 * * * *", func(ctx context.Context, r *soloist.Run) error {
			if r.Tick.Minute() == 20 {
				return errImport
			}
			return pause(ctx, time.Minute)
		}))
		always := following("always", "import", time.Second)
		always.AfterAny = true
		for _, name := range letters(3) {
			c.start(name, imports, always, following("left", "import", 3*time.Minute), following("right", "import", time.Minute),
				following("join", "left, right", time.Minute))
		}
		until(39 * time.Minute)
		c.wantOutcomes("import", "succeeded 00:10:00", "failed 00:20:00 no data", "succeeded 00:30:00")
		c.wantOutcomes("left", "succeeded 00:10:00", "skipped 00:20:00 import failed", "succeeded 00:30:00")
		c.wantOutcomes("join", "succeeded 00:10:00", "skipped 00:20:00 left skipped", "succeeded 00:30:00")
		c.wantOutcomes("always", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
		for job, before := range map[string]string{"always": "import", "left": "import", "right": "import", "join": "left"} {
			c.wantFollowed(job, before, 100*time.Millisecond)
		}
	})
}

// A run by hand of the predecessor moves no tick, and a run by hand of the follower waits for none.
func TestFollowerAndRunsByHand(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.start("a", importing("0 * * * *", time.Second), following("report", "import", time.Second))
		time.Sleep(time.Minute)
		if _, err := r.RunNow(c.t.Context(), "import", "by-hand"); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Minute)
		if n := len(c.runsOf("report")); n != 0 {
			t.Errorf("%d runs after a run by hand of import", n)
		}
		if f, err := r.RunNow(c.t.Context(), "report", "too"); err != nil || f.Status != store.Succeeded {
			t.Errorf("a run by hand of report: %+v, %v", f, err)
		}
		until(61 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:21:03", "succeeded 01:00:00")
	})
}

// The tick of a job whose runner dies is over when its last attempt is.
func TestFollowerWaitsForTheLastAttempt(t *testing.T) {
	for interrupted, want := range map[soloist.InterruptedPolicy]string{
		soloist.Abandon: "skipped 00:10:00 import abandoned", soloist.Rerun: "succeeded 00:10:00",
	} {
		inCase(t, string(interrupted), func(_ *testing.T, c *cluster) {
			imports, report := importing("*/10 * * * *", time.Minute), following("report", "import", time.Second)
			imports.Interrupted = interrupted
			all := map[string]*replica{"a": c.start("a", imports, report), "b": c.start("b", imports, report)}
			until(10*time.Minute + 30*time.Second)
			all[c.runsOf("import")[0].replica].kill()
			until(19 * time.Minute)
			c.wantOutcomes("report", want)
			c.wantFollowed("report", "import", 20*time.Second)
		})
	}
}

// The predecessor goes on while no replica knows the follower. What has left its record is missed.
func TestFollowerOfForgottenOutcomes(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports, report := importing("* * * * *", time.Second), following("report", "import", time.Second)
		report.Missed = soloist.RunAll
		both := c.start("a", imports, report)
		until(90 * time.Second)
		both.stop()
		one := c.start("b", imports)
		until(25*time.Minute + 30*time.Second)
		one.stop()
		c.start("c", imports, report)
		time.Sleep(3500 * time.Millisecond)
		c.wantOutcomes("report", "succeeded 00:01:00", "missed 00:01:00-00:05:00 the outcome of import is not known", "succeeded 00:06:00", "succeeded 00:07:00", "succeeded 00:08:00")
	})
}

// The entry of the predecessor is away, or holds what is no record of it: its follower waits, and says why.
func TestFollowerOfUnusableRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(c *cluster)
		want  string
	}{
		"deleted": {func(c *cluster) { _ = c.store.Delete(context.Background(), "soloist/import") }, "it waits for import, which has no entry"},
		"damaged": {func(c *cluster) {
			_ = c.store.Delete(context.Background(), "soloist/import")
			_, _ = c.store.Create(context.Background(), "soloist/import", []byte("{}"))
		}, "it waits for import, whose record cannot be used: the record has schema 0"},
		"foreign": {func(c *cluster) {
			other := c.replica("other", importing("* * * * *", 0))
			other.App = "other"
			other.wake()
			e, _ := c.store.Read(context.Background(), "other/import")
			_ = c.store.Delete(context.Background(), "soloist/import")
			_, _ = c.store.Create(context.Background(), "soloist/import", e.Record)
		}, "two programs share a name"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			work := []soloist.Work{importing("*/10 * * * *", time.Second), following("report", "import", time.Second)}
			c.replica("first", work...).wake()
			time.Sleep(time.Minute)
			tt.spoil(c)
			r := c.replica("a", work...)
			until(10*time.Minute + time.Second)
			got, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"report"}})
			wantError(t, err, "job report", tt.want)
			if len(got.Jobs) != 1 || len(got.Jobs[0].Ran) != 0 || len(c.all()) != 0 {
				t.Errorf("got %+v, %d runs", got, len(c.all()))
			}
		})
	}
}

// A new job with ClaimAhead does not have a tick that comes within three seconds, and its new follower does not miss it.
func TestNewFollowerOfClaimAhead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		told, imports := &lateLog{}, importing("@hourly", time.Second)
		imports.ClaimAhead = true
		until(time.Hour - 2*time.Second)
		c.launch(told.of(c.replica("a", imports, finishBy(30*time.Minute, following("report", "import", time.Second)))))
		until(2*time.Hour + time.Minute)
		for _, job := range []string{"import", "report"} {
			c.wantOutcomes(job, "succeeded 02:00:00")
		}
		told.want(c)
	})
}

// The entries of the jobs before a new follower are made before its own, whichever of them is looked at first.
func TestNewFollowerIsNoOlderThanItsPredecessors(t *testing.T) {
	inCluster(t, func(c *cluster) {
		told := &lateLog{}
		work := []soloist.Work{importing("@hourly", time.Second), following("clean", "import", time.Second),
			finishBy(30*time.Minute, following("report", "clean", time.Second))}
		until(time.Hour - time.Second)
		if _, err := c.replica("first", work...).RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"report"}}); err != nil {
			t.Error(err)
		}
		until(time.Hour + time.Second)
		c.launch(told.of(c.replica("a", work...)))
		until(2*time.Hour - time.Minute)
		for _, job := range []string{"import", "clean", "report"} {
			c.wantOutcomes(job, "succeeded 01:00:00")
		}
		told.want(c)
	})
}

// A replica that runs the next tick of the predecessor, which has waited for the one before on a replica that is stopped then,
// starts the follower for that one.

// A follower whose changed After names a new job misses no tick that this job never had: with ClaimAhead, or since its entry
// would be the younger one.
func TestChangedAfterNamesANewJob(t *testing.T) {
	for name, ahead := range map[string]bool{"": false, "with ClaimAhead": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			told, imports := &lateLog{}, importing("@hourly", time.Second)
			loads := named("load", imports)
			loads.ClaimAhead = ahead
			old := c.start("old", imports, finishBy(30*time.Minute, following("report", "import", time.Second)))
			until(time.Hour - 3*time.Second)
			old.stop()
			work := []soloist.Work{imports, loads, finishBy(30*time.Minute, following("report", "load", time.Second))}
			until(time.Hour - 2*time.Second)
			if _, err := c.replica("first", work...).RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"report"}}); err != nil {
				t.Error(err)
			}
			until(time.Hour + time.Second)
			c.launch(told.of(c.replica("new", work...)))
			until(2*time.Hour + time.Minute)
			want := []string{"succeeded 01:00:00", "succeeded 02:00:00"}
			if ahead {
				want = want[1:]
			}
			c.wantOutcomes("load", want...)
			if report := c.outcomes("report"); !slices.Equal(report[1:], want) {
				t.Errorf("the outcomes of report are %q", report)
			}
			told.want(c)
		})
	}
}
func TestFollowerOfPredecessorThatRunsItsNextTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports, report := importing("*/10 * * * *", 12*time.Minute), following("report", "import", time.Minute)
		imports.Overlap = soloist.QueueOne
		a := c.replica("a", imports, report)
		a.Grace = time.Hour
		c.launch(a)
		until(11 * time.Minute)
		c.start("b", imports, report)
		until(20*time.Minute + 30*time.Second)
		a.stop()
		until(33 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00")
		c.wantFollowed("report", "import", 10*time.Second)
	})
}

// A predecessor that cannot be read is reported once, and so is the end of that.
func TestUnreadablePredecessorIsReportedOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports, s := importing("0 1 * * *", 10*time.Minute), &faultyStore{Store: c.store}
		c.start("a", imports)
		until(time.Minute)
		var bad atomic.Bool
		s.meets(func(op, name string) error {
			switch {
			case name == "soloist/import" && op == "acquire":
				return store.ErrHeld
			case name == "soloist/import" && bad.Load():
				return errNetwork
			}
			return nil
		}, nil)
		b := c.replica("b", imports, following("report", "import", time.Second), following("mail", "import", time.Second))
		b.Store = s
		var mu sync.Mutex
		emitted := map[event.Kind]int{}
		b.Events = func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			emitted[e.Kind]++
		}
		c.launch(b)
		until(time.Hour + 30*time.Second)
		bad.Store(true)
		until(time.Hour + 5*time.Minute)
		bad.Store(false)
		until(time.Hour + 12*time.Minute)
		c.wantOutcomes("report", "succeeded 01:00:00")
		mu.Lock()
		defer mu.Unlock()
		if begins, ends := emitted[event.StoreTrouble], emitted[event.StoreBack]; begins != 1 || ends != 1 {
			t.Errorf("the trouble was reported %d times, and its end %d times", begins, ends)
		}
	})
}

// A run of the predecessor has stalled and does not return: its outcome is known at once.
func TestFollowerOfStalledRunOfItsOwnReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("0 1 * * *", func(context.Context, *soloist.Run) error {
			time.Sleep(20 * time.Minute)
			return nil
		}))
		imports.HeartbeatTimeout = time.Minute
		always := following("always", "import", time.Second)
		always.AfterAny = true
		c.start("a", imports, always)
		until(time.Hour + 2*time.Minute)
		if runs := c.runsOf("always"); len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > 61*time.Second {
			t.Errorf("got %d runs, want one after the stall: %+v", len(runs), runs)
		}
	})
}

// Each shard of a follower waits for all shards of the job before it. The shards of the follower look together. None reads
// what this replica does itself; what another one does it learns by listings.
func TestShardsFollowShards(t *testing.T) {
	for name, tt := range map[string]struct {
		elsewhere bool
		kept      string
		apart     time.Duration // the ends of the shards
		lists     int64
		late      time.Duration
	}{
		"of its own replica": {false, "", 10 * time.Second, 15, time.Second},
		"of another replica": {true, "soloist/import-", 0, 60, 10 * time.Second},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			const n = 16
			report, backend := inShards(n, following("report", "import", time.Second)), &distant{kept: tt.kept}
			imports := inShards(n, named("import", doing("0 1 * * *", func(ctx context.Context, r *soloist.Run) error {
				return pause(ctx, time.Minute+time.Duration(r.Shard)*tt.apart)
			})))
			if tt.elsewhere {
				c.start("a", imports)
				until(time.Minute)
			}
			c.launch(c.far(backend, "b", imports, report))
			until(time.Hour - 10*time.Second)
			backend.reads.Store(0)
			backend.lists.Store(0)
			until(time.Hour + 5*time.Minute)
			c.wantFollowed("report", "import", tt.late)
			if runs := len(c.runsOf("report")); runs != n {
				t.Errorf("%d runs, want %d", runs, n)
			}
			if reads, lists := backend.reads.Load(), backend.lists.Load(); reads > 2*n || lists > tt.lists {
				t.Errorf("%d reads and %d listings for one tick", reads, lists)
			}
		})
	}
}

// The replica that ends the last of the shards starts the follower at once, also if others have run the rest: it reads
// that once more when it has none left itself. Shards that end just before their next tick have it start as well.
func TestFollowerOfShardsOfTwoReplicas(t *testing.T) {
	for name, tt := range map[string]struct {
		shards             int
		takes, apart, late time.Duration
	}{
		"long before the next tick": {4, 5 * time.Minute, 700 * time.Millisecond, 200 * time.Millisecond},
		"just before the next tick": {8, 9*time.Minute + 58*time.Second, 200 * time.Millisecond, 11 * time.Second},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			imports := inShards(tt.shards, named("import", doing("*/10 * * * *", func(ctx context.Context, r *soloist.Run) error {
				return pause(ctx, tt.takes+time.Duration(r.Shard)*tt.apart)
			})))
			c.start("a", imports, following("report", "import", time.Second))
			c.start("b", imports, following("report", "import", time.Second))
			until(2*time.Hour + 5*time.Minute)
			c.wantFollowed("report", "import", tt.late)
			if runs := len(c.runsOf("report")); runs != 11 {
				t.Errorf("%d runs of report, want one for each tick but the last", runs)
			}
		})
	}
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
		c.wantFollowed("report", "import", 4*time.Second)
	})
}

// Other jobs in After, or another number of their shards, are another definition: it counts from now. A shard that is new
// has no outcome of a tick that waits already: docs/after.md says so.
func TestFollowerOfOtherJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		shards int
		after  string
		want   string
	}{
		"more shards":  {6, "import", "missed 00:10:00 the outcome of import-4 is not known"},
		"fewer shards": {2, "import", "succeeded 00:10:00"},
		"another job":  {4, "clean", "succeeded 00:10:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			imports, clean, report := importing("*/10 * * * *", time.Minute), following("clean", "import", time.Second), following("report", "import", time.Second)
			old := c.launch(c.far(&distant{kept: "soloist/report"}, "old", inShards(4, imports), clean, report))
			until(15 * time.Minute)
			old.stop()
			report.After = tt.after
			c.start("new", inShards(tt.shards, imports), clean, report)
			until(19 * time.Minute)
			c.wantOutcomes("report", "missed 00:00:00-00:09:59 the schedule changed", tt.want)
		})
	}
}

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

// A heldLease is a lease that another client has.
type heldLease struct{ store.Lease }

func (heldLease) Acquire(context.Context, time.Duration, string) (store.Revision, error) {
	return store.Revision{}, store.ErrHeld
}

// far makes a replica over a distant store that is not started.
func (c *cluster) far(backend *distant, name string, work ...soloist.Work) *replica {
	backend.Memory = c.store
	r := c.replica(name, work...)
	r.Store = backend
	return r
}
