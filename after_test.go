package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
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

// runsOf returns the runs of a job.
func (c *cluster) runsOf(job string) (runs []ran) {
	for _, r := range c.all() {
		if r.Job == job {
			runs = append(runs, r)
		}
	}
	return runs
}

// wantFollowed checks that each run of a job began after the end of the last run of another one
// for its tick, by at most late.
func (c *cluster) wantFollowed(job, before string, late time.Duration) {
	c.t.Helper()
	ends := map[time.Time]time.Time{}
	for _, r := range c.runsOf(before) {
		ends[r.Tick] = r.end
	}
	for _, r := range c.runsOf(job) {
		if end := ends[r.Tick]; end.IsZero() || r.start.Before(end) || r.start.Sub(end) > late {
			c.t.Errorf("%s starts for %s at %s, and %s ended at %s", job, r.Tick.Format(time.TimeOnly), r.start.Format(time.TimeOnly), before, end.Format(time.TimeOnly))
		}
	}
}

var errImport = errors.New("no data")

func TestFollowerRunsAfterItsPredecessor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, importing("*/10 * * * *", 3*time.Minute), following("report", "import", time.Minute))
		}
		time.Sleep(35 * time.Minute)
		c.wantOutcomes("import", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
		c.wantOutcomes("report", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
		c.wantFollowed("report", "import", 100*time.Millisecond)
	})
}

// A replica that does not run the predecessor itself sees its end soon, compared with how long it
// has run.
func TestFollowerOnAnotherReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", importing("*/10 * * * *", time.Minute))
		r := c.start("b", named("import", doing("*/10 * * * *", nil)), following("report", "import", time.Second))
		r.tap.meet(func(op string, apply func() error) error {
			if op == "acquire" && len(c.runsOf("import")) == 0 && time.Now().Minute() < 10 {
				return store.ErrHeld // a is the one that imports
			}
			return apply()
		})
		time.Sleep(12 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00")
		c.wantFollowed("report", "import", 10*time.Second)
	})
}

func TestFollowerOfFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("*/10 * * * *", func(_ context.Context, r *soloist.Run) error {
			if r.Tick.Minute() == 20 {
				return errImport
			}
			return nil
		}))
		always := following("always", "import", time.Second)
		always.AfterAny = true
		c.start("a", imports, following("report", "import", time.Second), always, following("mail", "report", time.Second))
		time.Sleep(35 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00", "skipped 00:20:00 import failed", "succeeded 00:30:00")
		c.wantOutcomes("mail", "succeeded 00:10:00", "skipped 00:20:00 report skipped", "succeeded 00:30:00")
		c.wantOutcomes("always", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
	})
}

// Of a diamond the last job waits for both sides, however long each takes.
func TestFollowerOfTwo(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", importing("*/10 * * * *", time.Minute), following("left", "import", 3*time.Minute),
			following("right", "import", time.Minute), following("join", "left, right", time.Minute))
		time.Sleep(26 * time.Minute)
		c.wantOutcomes("join", "succeeded 00:10:00", "succeeded 00:20:00")
		c.wantFollowed("join", "left", 100*time.Millisecond)
	})
}

// A follower that is busy runs the newest tick that it may, and records those between.
func TestFollowerThatIsBehind(t *testing.T) {
	for missed, want := range map[soloist.MissedPolicy][]string{
		soloist.RunLatest: {"succeeded 00:01:00", "missed 00:01:00-00:03:00 a newer one was due", "succeeded 00:04:00", "missed 00:04:00-00:06:00 a newer one was due"},
		soloist.RunAll:    {"succeeded 00:01:00", "succeeded 00:02:00"},
	} {
		inCase(t, "missed: "+string(missed), func(t *testing.T, c *cluster) {
			report := following("report", "import", 200*time.Second)
			report.Missed = missed
			c.start("a", importing("* * * * *", time.Second), report)
			time.Sleep(8 * time.Minute)
			c.wantOutcomes("report", want...)
		})
	}
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

// A tick of the predecessor whose runner dies is not over before its last attempt is.
func TestFollowerWaitsForTheLastAttempt(t *testing.T) {
	for name, want := range map[string][]string{"rerun": {"succeeded 00:10:00"}, "abandon": {"skipped 00:10:00 import abandoned"}} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			imports := importing("*/10 * * * *", time.Minute)
			if name == "rerun" {
				imports = rerun(imports)
			}
			all := map[string]*replica{}
			for _, name := range []string{"a", "b"} {
				all[name] = c.start(name, imports, following("report", "import", time.Second))
			}
			until(10*time.Minute + 30*time.Second)
			all[c.runsOf("import")[0].replica].kill()
			until(19 * time.Minute)
			c.wantOutcomes("report", want...)
			if name == "rerun" {
				c.wantFollowed("report", "import", 20*time.Second)
			}
		})
	}
}

// A runner of the follower dies before its claim, or after it.
func TestFollowerWhoseRunnerDies(t *testing.T) {
	for name, tt := range map[string]struct {
		op   string
		job  func(soloist.Job) soloist.Job
		want string
		runs int
	}{
		"before its claim":       {"acquire", func(j soloist.Job) soloist.Job { return j }, "succeeded 00:10:00", 1},
		"after its claim":        {"write", func(j soloist.Job) soloist.Job { return j }, "abandoned 00:10:00 its runner died", 0},
		"after its claim, rerun": {"write", rerun, "succeeded 00:10:00", 1},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			work := []soloist.Work{importing("*/10 * * * *", time.Minute), tt.job(following("report", "import", time.Minute))}
			all := map[string]*replica{"a": c.start("a", work...), "b": c.start("b", work...)}
			until(10*time.Minute + 59*time.Second)
			first := all[c.runsOf("import")[0].replica]
			calls := 0
			first.tap.meet(after(tt.op, func() {
				if calls++; tt.op == "acquire" || calls == 2 { // the first write is the outcome of import
					first.kill()
				}
			}))
			until(19 * time.Minute)
			c.wantOutcomes("import", "succeeded 00:10:00")
			c.wantOutcomes("report", tt.want)
			heard := slices.DeleteFunc(c.runsOf("report"), func(r ran) bool { return r.replica == first.Replica })
			if len(heard) != tt.runs {
				t.Errorf("%d runs of the other replica, want %d", len(heard), tt.runs)
			}
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

// A predecessor that skips its ticks has its followers skip theirs, and one that an operator has
// paused has no outcome before it goes on.
func TestFollowerOfPausedPredecessor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports, report := importing("*/10 * * * *", time.Second), following("report", "import", time.Second)
		imports.Paused = true
		c.start("a", imports, report)
		time.Sleep(25 * time.Minute)
		c.wantOutcomes("report", "skipped 00:10:00 import skipped", "skipped 00:20:00 import skipped")
	})
	inCluster(t, func(c *cluster) {
		imports, report := importing("*/10 * * * *", time.Second), following("report", "import", time.Second)
		c.start("a", imports, report)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "import"}, imports, report)
		until(25 * time.Minute)
		c.wantOutcomes("report")
		c.order(soloist.Order{Kind: store.OrderResume, Job: "import"}, imports, report)
		until(35 * time.Minute)
		c.wantOutcomes("report", "skipped 00:00:00-00:20:00 import skipped", "succeeded 00:30:00")
	})
}

// The deadline counts from the end of the predecessor.
func TestFollowerStartingDeadline(t *testing.T) {
	inCluster(t, func(c *cluster) {
		report := following("report", "import", 5*time.Minute)
		report.StartingDeadline = 3 * time.Minute
		c.start("a", importing("*/10 * * * *", 9*time.Minute), report)
		until(30*time.Minute + time.Second)
		c.wantOutcomes("report", "succeeded 00:10:00")
		until(35 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00", "succeeded 00:20:00")
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

// The entry of the predecessor was deleted and made anew: its outcomes are gone, and no success is
// guessed.
func TestFollowerOfRecreatedPredecessor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := []soloist.Work{importing("*/10 * * * *", time.Minute), following("report", "import", time.Second)}
		c.replica("first", work...).wake()
		until(10*time.Minute + time.Second)
		c.replica("import", importing("*/10 * * * *", time.Minute)).wake()
		_ = c.store.Delete(context.Background(), "soloist/import")
		until(12 * time.Minute)
		c.replica("second", work...).wake()
		c.wantOutcomes("report", "missed 00:10:00 the outcome of import is not known")
		until(20 * time.Minute)
		c.replica("third", work...).wake()
		c.wantOutcomes("report", "missed 00:10:00 the outcome of import is not known", "succeeded 00:20:00")
	})
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

// A changed After is a changed definition: it counts from now.
func TestChangedAfter(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports, clean := importing("*/10 * * * *", 5*time.Minute), following("clean", "import", time.Minute)
		old := c.start("old", imports, clean, following("report", "import", time.Second))
		until(12 * time.Minute)
		old.stop()
		c.start("new", imports, clean, following("report", "clean", time.Second))
		until(28 * time.Minute)
		c.wantOutcomes("clean", "skipped 00:10:00 import abandoned", "succeeded 00:20:00")
		c.wantOutcomes("report", "missed 00:00:00-00:09:59 the schedule changed", "skipped 00:10:00 clean skipped", "succeeded 00:20:00")
		c.wantFollowed("report", "clean", 100*time.Millisecond)
	})
}

// A run of the predecessor by hand, after its tick has failed, is no run of that tick.
func TestFollowerTakesNoRunByHandForATick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("*/10 * * * *", func(_ context.Context, r *soloist.Run) error {
			if r.Request == "" {
				return errImport
			}
			return nil
		}))
		report := following("report", "import", time.Second)
		c.replica("first", imports, report).wake()
		until(10*time.Minute + time.Second)
		alone := c.replica("import", imports)
		alone.wake()
		if f, err := alone.RunNow(c.t.Context(), "import", "again"); err != nil || f.Status != store.Succeeded {
			t.Errorf("got %+v, %v", f, err)
		}
		c.replica("second", imports, report).wake()
		c.wantOutcomes("report", "skipped 00:10:00 import failed")
	})
}

// leaveAtItsEnd starts a replica that runs a tick of import, and one that goes on. The first one is
// stopped while it runs, and ends within its grace.
func (c *cluster) leaveAtItsEnd(work []soloist.Work, started, stopped time.Duration) {
	a := c.replica("a", work...)
	a.Grace = time.Hour
	c.launch(a)
	until(started)
	c.start("b", work...)
	until(stopped)
	a.stop()
}

// A replica that runs the next tick of the predecessor, which has waited for the one before, starts
// the follower for that one.
func TestFollowerOfPredecessorThatRunsItsNextTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("*/10 * * * *", 12*time.Minute)
		imports.Overlap = soloist.QueueOne
		c.leaveAtItsEnd([]soloist.Work{imports, following("report", "import", time.Minute)}, 11*time.Minute, 20*time.Minute+30*time.Second)
		until(33 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00")
		c.wantFollowed("report", "import", 10*time.Second)
	})
}

// The follower comes before the ticks of a backfill, also on the replica that runs them.
func TestFollowerOfPredecessorThatRunsABackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := []soloist.Work{importing("0 * * * *", 20*time.Minute), following("report", "import", time.Minute)}
		go func() {
			until(time.Hour + 6*time.Minute)
			b := soloist.Backfill{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(-19 * time.Hour), All: true}
			if _, err := c.replica("desk", work...).Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "import", By: "anna", Backfill: b}); err != nil {
				t.Error(err)
			}
		}()
		c.leaveAtItsEnd(work, time.Hour+5*time.Minute, time.Hour+7*time.Minute)
		until(time.Hour + 30*time.Minute)
		if n := len(c.filled()); n != 1 {
			t.Errorf("%d runs of the backfill, want the first one under way", n)
		}
		c.wantOutcomes("report", "succeeded 01:00:00")
		c.wantFollowed("report", "import", 10*time.Second)
	})
}

// Shards that end just before their next tick have the follower start, and not one period later.
func TestFollowerOfShardsThatTakeAPeriod(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const n = 8
		imports := inShards(n, named("import", doing("*/10 * * * *", func(ctx context.Context, r *soloist.Run) error {
			return pause(ctx, 9*time.Minute+58*time.Second+time.Duration(r.Shard)*200*time.Millisecond)
		})))
		for _, name := range []string{"a", "b"} {
			c.start(name, imports, following("report", "import", time.Second))
		}
		until(2*time.Hour + 5*time.Minute)
		ends := map[time.Time]time.Time{}
		for i := range n {
			for _, r := range c.runsOf(fmt.Sprintf("import-%d", i)) {
				if r.end.After(ends[r.Tick]) {
					ends[r.Tick] = r.end
				}
			}
		}
		runs := c.runsOf("report")
		if len(runs) != 11 {
			t.Errorf("%d runs of report, want one for each tick but the last", len(runs))
		}
		for _, r := range runs {
			if late := r.start.Sub(ends[r.Tick]); late < 0 || late > 11*time.Second {
				t.Errorf("report starts for %s %s after the last shard has ended", r.Tick.Format(time.TimeOnly), late)
			}
		}
	})
}

// Each outcome that has no end counts from when it was seen, also if others have followed while the
// follower was busy.
func TestFollowerStartingDeadlineOfOutcomesWithoutEnd(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("*/5 * * * *", time.Second)
		imports.Paused = true
		free := named("free", doing("", func(ctx context.Context, r *soloist.Run) error {
			if r.Tick.Minute() == 5 {
				return pause(ctx, 31*time.Minute)
			}
			return nil
		}))
		free.After, free.AfterAny, free.StartingDeadline, free.Missed = "import", true, 7*time.Minute, soloist.RunAll
		c.start("a", imports, free)
		until(39 * time.Minute)
		c.wantOutcomes("free", "succeeded 00:05:00", "missed 00:05:00-00:25:00 past the starting deadline", "succeeded 00:30:00", "succeeded 00:35:00")
	})
}

// A lamed store fails the reads of an entry while bad is set.
type lamed struct {
	*local.Memory
	entry string
	bad   atomic.Bool
}

func (s *lamed) Read(ctx context.Context, name string) (store.Entry, error) {
	if name == s.entry && s.bad.Load() {
		return store.Entry{}, errors.New("no route")
	}
	return s.Memory.Read(ctx, name)
}

func (s *lamed) Lease(name, id string) store.Lease {
	if name == s.entry {
		return heldLease{s.Memory.Lease(name, id)}
	}
	return s.Memory.Lease(name, id)
}

// A predecessor that cannot be read is reported once, and so is the end of that.
func TestUnreadablePredecessorIsToldOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("0 1 * * *", 10*time.Minute)
		c.start("a", imports)
		until(time.Minute)
		s := &lamed{Memory: c.store, entry: "soloist/import"}
		b := c.replica("b", imports, following("report", "import", time.Second), following("mail", "import", time.Second))
		b.tap.Store = s
		var mu sync.Mutex
		told := map[event.Kind]int{}
		b.Events = func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			told[e.Kind]++
		}
		c.launch(b)
		until(time.Hour + 30*time.Second)
		s.bad.Store(true)
		until(time.Hour + 5*time.Minute)
		s.bad.Store(false)
		until(time.Hour + 12*time.Minute)
		c.wantOutcomes("report", "succeeded 01:00:00")
		mu.Lock()
		defer mu.Unlock()
		if begins, ends := told[event.StoreTrouble], told[event.StoreBack]; begins != 1 || ends != 1 {
			t.Errorf("the trouble was told %d times, and its end %d times", begins, ends)
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
