package soloist_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
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
