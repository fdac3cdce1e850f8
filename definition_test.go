package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestChangedScheduleStartsFromNow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10s", time.Second))
		time.Sleep(25 * time.Second)
		young := c.start("new", work("@every 7s", time.Second))
		time.Sleep(20 * time.Second) // ticks at 30, 37, 44: multiples of 7 s since 1970
		var byNew []string
		for _, r := range c.all() {
			if r.replica == "new" {
				byNew = append(byNew, r.Tick.Format("05"))
			} else if r.start.After(time.Now().Add(-20 * time.Second)) {
				t.Errorf("the old replica ran %s", r.Tick)
			}
		}
		if want := []string{"30", "37", "44"}; !slices.Equal(byNew, want) {
			t.Errorf("the new one ran %q, want %q", byNew, want)
		}
		wantError(t, old.Health().Broken["work"], "another schedule")
		young.wantLines(1, "level=INFO", "the schedule has changed")
		old.wantLines(1, "level=ERROR", "another schedule")
	})
}

// A schedule is edited while the tick at 01:00:00 is due. If that tick is also the
// newest of the new schedule, it is owed as after a restart; else the new schedule
// counts from the moment of the change.
func TestCommonTickIsOwed(t *testing.T) {
	windowed := work("@every 20m", 0)
	windowed.StartingDeadline = 5 * time.Minute
	for name, tt := range map[string]struct {
		stopped time.Duration // when the old replica is, after midnight
		dies    bool          // instead of being stopped
		down    time.Duration // from then on
		young   soloist.Job
		want    []string // what follows
	}{
		"both name it": {59*time.Minute + 50*time.Second, false, 15 * time.Second, work("@every 20m", 0),
			[]string{"missed 00:50:00-00:59:59 the schedule changed", "succeeded 01:00:00", "succeeded 01:20:00"}},
		"a plain restart": {59*time.Minute + 50*time.Second, false, 15 * time.Second, work("@every 10m", 10*time.Second),
			[]string{"succeeded 01:00:00", "succeeded 01:10:00", "succeeded 01:20:00"}},
		"the new one does not name it": {59*time.Minute + 50*time.Second, false, 15 * time.Second, work("@every 11m", 0),
			[]string{"missed 00:50:00-01:00:05 the schedule changed", "succeeded 01:07:00", "succeeded 01:18:00"}},
		"a newer one is due": {59*time.Minute + 50*time.Second, false, 21 * time.Minute, work("@every 20m", 0),
			[]string{"missed 00:50:00-01:20:50 the schedule changed"}},
		"past the starting deadline": {59*time.Minute + 50*time.Second, false, 8 * time.Minute, windowed,
			[]string{"missed 00:50:00-00:59:59 the schedule changed", "missed 01:00:00 past the starting deadline", "succeeded 01:20:00"}},
		"the runner of the tick before has died": {50*time.Minute + 5*time.Second, true, 10 * time.Minute, work("@every 20m", 0),
			[]string{"abandoned 00:50:00 its runner died", "missed 00:50:00-00:59:59 the schedule changed", "succeeded 01:00:00", "succeeded 01:20:00"}},
		"nothing was due": {52 * time.Minute, false, time.Minute, work("@every 20m", 0),
			[]string{"missed 00:50:00-00:53:00 the schedule changed", "succeeded 01:00:00", "succeeded 01:20:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			old := c.start("old", work("@every 10m", 10*time.Second))
			time.Sleep(tt.stopped)
			if tt.dies {
				old.kill()
			}
			old.stop()
			time.Sleep(tt.down)
			c.start("young", tt.young)
			time.Sleep(time.Until(time.Date(2000, 1, 1, 1, 22, 0, 0, time.UTC)))
			got := c.outcomes("work")
			first := slices.Index(got, "succeeded 00:50:00") + 1
			if first == 0 {
				first = slices.Index(got, "succeeded 00:40:00") + 1
			}
			if got = got[first:]; !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			once(t, c.all())
		})
	}
}

// The record of a job that was not run for days names a tick of that time. The
// ticks of a new schedule since then came due under no definition that was in
// force, so RunAll does not run them.
func TestChangedScheduleOwesNoOlderTicks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		daily, young := work("@daily", 0), work("* * * * *", 0)
		daily.Missed, young.Missed = soloist.RunAll, soloist.RunAll
		old := c.start("old", daily)
		time.Sleep(25 * time.Hour)
		old.stop()
		time.Sleep(4*24*time.Hour + 5*time.Second)
		change := time.Now()
		c.start("young", young)
		time.Sleep(2 * time.Minute)
		var got []string
		for _, r := range ranBy(c, "young", change.Add(-1)) {
			got = append(got, r.Tick.Format("15:04:05"))
		}
		if want := []string{"01:01:00", "01:02:00"}; !slices.Equal(got, want) {
			t.Errorf("%d ticks are run: %.40q, want %q", len(got), got, want)
		}
	})
}

// A singleton that is turned into a job has no tick that is owed.
func TestSingletonTurnedJobOwesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		lead := leader()
		lead.Name = "work"
		old := c.start("old", lead)
		time.Sleep(59*time.Minute + 50*time.Second)
		old.stop()
		time.Sleep(15 * time.Second)
		c.start("young", work("@every 20m", 0))
		time.Sleep(21 * time.Minute)
		if got := c.outcomes("work"); got[len(got)-1] != "succeeded 01:20:00" || slices.Contains(got, "succeeded 01:00:00") {
			t.Errorf("got %q", got)
		}
	})
}

// The run of the tick at 00:50:00 is stopped and would be repeated when the schedule
// is edited. The tick at 01:00:00, which comes due meanwhile, is owed all the same.
func TestCommonTickIsOwedAfterStoppedRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long := rerun(work("@every 10m", 0))
		long.Do = c.watch("old", func(ctx context.Context, run *soloist.Run) error {
			if run.Tick.Minute() == 50 {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		old := c.start("old", long)
		time.Sleep(59*time.Minute + 50*time.Second)
		old.stop()
		time.Sleep(15 * time.Second)
		young := rerun(work("@every 20m", 0))
		c.start("young", young)
		time.Sleep(20 * time.Minute)
		got := c.outcomes("work")
		got = got[slices.Index(got, "succeeded 00:40:00")+1:]
		want := []string{"abandoned 00:50:00 not run again", "missed 00:50:00-00:59:59 the schedule changed", "succeeded 01:00:00", "succeeded 01:20:00"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// The first tick of a new job, at 00:10:00, comes due while its schedule is edited.
// It is owed like a later one: nothing has been written since the record was made.
func TestCommonTickIsOwedByNewJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10m", 0))
		time.Sleep(9*time.Minute + 50*time.Second)
		old.stop()
		time.Sleep(15 * time.Second)
		c.start("young", work("@every 5m", 0))
		time.Sleep(7 * time.Minute)
		got := c.outcomes("work")
		want := []string{"missed 00:00:00-00:09:59 the schedule changed", "succeeded 00:10:00", "succeeded 00:15:00"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		once(t, c.all())
	})
}

// takenBack is how soon older replicas take a job back: a look until the mark,
// four minutes without an answer, and a look.
const takenBack = 4*time.Minute + 2*maxLook + time.Second

// maxLook is how often a replica looks at a job of a younger definition.
const maxLook = 30 * time.Second

// offTick is when a younger replica starts: at a tick it may see a run, and looks
// again a minute later.
const offTick = time.Minute + 5*time.Second

// answeredFor is how long a mark is not repeated after an answer.
const answeredFor = 2 * time.Minute

func TestAbortedDeployIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct{ old, young soloist.Work }{
		"another schedule":     {work("@every 10s", 0), work("@every 7s", 0)},
		"a yearly schedule":    {work("@every 10s", 0), work("0 0 1 1 *", 0)},
		"job turned singleton": {work("@every 10s", 0), lead("work")},
		"singleton turned job": {lead("work"), work("@every 10s", 0)},
		"yearly, then hourly":  {work("0 * * * *", 0), work("0 0 1 7 *", 0)},
	} {
		for _, end := range []string{"stopped", "killed"} {
			inCase(t, name+", "+end, func(t *testing.T, c *cluster) {
				old, other := c.start("old", test.old), c.start("other", test.old)
				time.Sleep(offTick)
				if name == "singleton turned job" { // its holder must lose the lease first
					old.tap.cut.Store(true)
					other.tap.cut.Store(true)
					time.Sleep(2 * D)
				}
				young := c.start("young", test.young)
				time.Sleep(20 * time.Second)
				old.tap.cut.Store(false)
				other.tap.cut.Store(false)
				if end == "killed" {
					young.kill()
				} else {
					young.stop()
				}
				gone := time.Now()
				due := gone
				if name == "yearly, then hourly" {
					due = gone.Truncate(time.Hour).Add(time.Hour)
				}
				time.Sleep(due.Sub(gone) + takenBack + answeredFor + 2*D)
				runs := append(ranBy(c, "old", gone), ranBy(c, "other", gone)...)
				if name == "yearly, then hourly" { // its next tick is an hour later
					time.Sleep(time.Hour)
					runs = append(ranBy(c, "old", gone), ranBy(c, "other", gone)...)
				}
				if len(ranBy(c, "young", time.Time{})) == 0 && name != "a yearly schedule" && name != "yearly, then hourly" {
					t.Fatal("the younger replica never ran")
				}
				if len(runs) == 0 {
					t.Fatalf("the job does not run any more: %v", old.Health().Broken)
				}
				if len(old.Health().Broken)+len(other.Health().Broken) > 0 {
					t.Errorf("health is %v and %v", old.Health().Broken, other.Health().Broken)
				}
				if _, singleton := test.old.(soloist.Singleton); !singleton {
					once(t, c.all())
				}
			})
		}
	}
}

func TestTakeBackEndsWhenYoungerReturns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		stays := c.start("stays", work("@every 10s", 0))
		time.Sleep(time.Minute)
		gone := c.start("gone", work("@every 7s", 0))
		time.Sleep(time.Minute)
		gone.stop()
		stopped := time.Now()
		time.Sleep(4 * time.Minute)
		if runs := ranBy(c, "stays", stopped); len(runs) > 0 {
			t.Errorf("taken back after %s", runs[0].start.Sub(stopped))
		}
		time.Sleep(takenBack - 4*time.Minute + 2*D)
		if len(ranBy(c, "stays", stopped)) == 0 {
			t.Fatalf("not taken back: %v", stays.Health().Broken)
		}
		stays.wantLines(1, "level=WARN", "takes the job back")
		c.start("back", work("@every 7s", 0))
		time.Sleep(time.Minute)
		for _, r := range c.all()[len(c.all())-5:] {
			if r.replica != "back" {
				t.Errorf("%s runs tick %s", r.replica, r.Tick)
			}
		}
		once(t, c.all())
	})
}

// A younger replica whose schedule has no tick for months answers all the same.
func TestIdleYoungerReplicaAnswers(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10s", 0))
		time.Sleep(offTick)
		young := c.start("young", work("0 0 1 7 *", 0))
		started := time.Now()
		time.Sleep(24 * time.Hour)
		if runs := ranBy(c, "old", started); len(runs) > 0 {
			t.Errorf("taken back from a replica that is up: %d runs", len(runs))
		}
		old.wantLines(0, "takes the job back")
		answers := len(young.log.lines("answered a replica with an older definition"))
		if least, most := 24*12, 24*31; answers < least || answers > most {
			t.Errorf("%d answers in a day, want %d to %d", answers, least, most)
		}
	})
}

// Between two runs of the old definition the entry is free for a few seconds: a
// younger replica that has no tick of its own due finds one of these gaps.
func TestYoungerDefinitionIsInForceSoon(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("old", work("@every 1m", 50*time.Second))
		time.Sleep(time.Minute + time.Second)
		c.start("young", work("0 0 1 7 *", 0))
		started := time.Now()
		time.Sleep(2 * time.Minute)
		if c.record("work").Definition.Since.Before(started.Add(-time.Second)) {
			t.Errorf("after two minutes the old definition is in force")
		}
	})
}

// While a run of the younger definition goes on, the older replica waits.
func TestLongRunOfYoungerDefinitionIsNoTakeBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("old", work("@every 10s", 0))
		time.Sleep(time.Minute)
		c.start("young", work("@every 7s", 20*time.Minute))
		time.Sleep(15 * time.Minute)
		runs := c.all()
		if last := runs[len(runs)-1]; last.replica != "young" || !last.end.IsZero() {
			t.Errorf("got %+v", last)
		}
		time.Sleep(10 * time.Minute)
		runs = c.all()
		if last := runs[len(runs)-1]; last.replica != "young" || !last.end.IsZero() {
			t.Errorf("after its end: got %+v", last)
		}
	})
}

// The younger replica cannot answer in an outage that hits both, whenever it
// starts, so the time in it does not count.
func TestOutageIsNoTakeBack(t *testing.T) {
	back := 0
	for phase := range 60 {
		inCluster(t, func(c *cluster) {
			old := c.start("old", work("@every 10s", 0))
			time.Sleep(offTick)
			young := c.start("young", work("0 0 1 7 *", 0))
			time.Sleep(10*time.Minute + time.Duration(phase)*2777*time.Millisecond)
			old.tap.cut.Store(true)
			young.tap.cut.Store(true)
			time.Sleep(5*time.Minute + time.Duration(phase)*777*time.Millisecond)
			old.tap.cut.Store(false)
			time.Sleep(maxLook)
			young.tap.cut.Store(false)
			time.Sleep(10 * time.Minute)
			if len(old.log.lines("takes the job back")) > 0 {
				back++
			}
		})
	}
	if back > 0 {
		t.Errorf("after %d of 60 outages the old definition is back while the younger replica is up", back)
	}
}

// A younger replica that is cut off for long loses the job, and has it again
// after a restart.
func TestYoungerReplicaCutOffLosesJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("old", work("@every 10s", 0))
		time.Sleep(offTick)
		young := c.start("young", work("@every 7s", 0))
		time.Sleep(time.Minute)
		young.tap.cut.Store(true)
		cut := time.Now()
		time.Sleep(takenBack + answeredFor)
		if len(ranBy(c, "old", cut)) == 0 {
			t.Fatal("the older replica does not take the job back")
		}
		young.tap.cut.Store(false)
		time.Sleep(maxLook)
		healed := time.Now()
		time.Sleep(10 * time.Minute)
		if runs := ranBy(c, "young", healed); len(runs) > 0 {
			t.Errorf("the younger replica runs again without a restart: %d runs", len(runs))
		}
		young.stop()
		restarted := time.Now()
		c.start("young2", work("@every 7s", 0))
		time.Sleep(time.Minute)
		if len(ranBy(c, "young2", restarted)) == 0 {
			t.Error("a restarted younger replica does not run")
		}
		once(t, c.all())
	})
}

// Between two runs of a backlog the entry is free, and its tick long overdue.
func TestBacklogIsNoTakeBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 500*time.Millisecond)
		job.Missed = soloist.RunAll
		old := c.start("old", job)
		time.Sleep(10 * time.Minute)
		old.stop()
		old2 := c.start("old2", job)
		time.Sleep(offTick)
		young := work("@every 30s", 2*time.Minute)
		young.Missed = soloist.RunAll
		y := c.start("young", young)
		y.tap.meet(func(op string, apply func() error) error {
			time.Sleep(20 * time.Millisecond)
			defer time.Sleep(20 * time.Millisecond)
			return apply()
		})
		time.Sleep(24 * time.Hour)
		if len(old2.log.lines("takes the job back")) > 0 {
			t.Errorf("taken back from a young one that lives: %v", y.Health().Broken)
		}
	})
}

// Three definitions are up and the youngest goes: of the two others the younger one
// takes the job back, however seldom its ticks are.
func TestYoungerOfTwoOlderTakesBack(t *testing.T) {
	for _, end := range []string{"stopped", "killed"} {
		inCluster(t, func(c *cluster) {
			oldest := c.start("oldest", work("@every 1m", 0))
			time.Sleep(5 * time.Minute)
			middle := c.start("middle", work("0 * * * *", 0))
			time.Sleep(5 * time.Minute)
			youngest := c.start("youngest", work("@every 2m", 0))
			time.Sleep(5 * time.Minute)
			if end == "killed" {
				youngest.kill()
			} else {
				youngest.stop()
			}
			gone := time.Now()
			time.Sleep(3 * time.Hour)
			if runs := ranBy(c, "middle", gone); len(runs) != 3 {
				t.Errorf("%s: the younger one runs %d ticks of 3", end, len(runs))
			}
			if runs := ranBy(c, "oldest", gone); len(runs) > 0 {
				t.Errorf("%s: the oldest one runs %d ticks, the first at %s", end, len(runs), runs[0].start)
			}
			if why := middle.Health().Broken["work"]; why != nil {
				t.Errorf("%s: health of the younger one: %v", end, why)
			}
			middle.kill()
			gone = time.Now()
			time.Sleep(takenBack + answeredFor)
			if len(ranBy(c, "oldest", gone)) == 0 {
				t.Errorf("%s: the oldest one never takes the job back: %v", end, oldest.Health().Broken)
			}
		})
	}
}

// A replica of the youngest definition that is up keeps the job from two older ones.
func TestTwoOlderDefinitionsAreAnswered(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("oldest", work("@every 1m", 0))
		time.Sleep(5 * time.Minute)
		c.start("middle", work("0 * * * *", 0))
		time.Sleep(5*time.Minute + 5*time.Second)
		c.start("youngest", work("0 0 1 7 *", 0))
		started := time.Now()
		time.Sleep(24 * time.Hour)
		if runs := append(ranBy(c, "oldest", started), ranBy(c, "middle", started)...); len(runs) > 0 {
			t.Errorf("%d runs of older definitions, the first at %s by %s", len(runs), runs[0].start, runs[0].replica)
		}
	})
}

// A replica that was not well decides by what it reads now.
func TestOldRecordIsNoTakeBack(t *testing.T) {
	back := 0
	for phase := range 10 {
		inCluster(t, func(c *cluster) {
			hang := soloist.Job{Name: "hang", Schedule: "0 1 0 * * *", Lease: D, Timeout: time.Second,
				Do: func(ctx context.Context, run *soloist.Run) error { time.Sleep(10 * time.Minute); return nil }}
			old := c.start("old", work("@every 10s", 0), hang)
			time.Sleep(50*time.Second + time.Duration(phase)*time.Second)
			c.start("young", work("@every 7s", 0))
			time.Sleep(20 * time.Minute)
			if len(old.log.lines("takes the job back")) > 0 {
				back++
			}
		})
	}
	if back > 0 {
		t.Errorf("%d of 10: taken back from a young one that lives", back)
	}
}

// A replica looks while another one asks, under its lease, for a run whose
// runner died: the answer waits until the lease is free.
func TestMarkUnderLeaseIsAnsweredLater(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 10s", time.Hour))
		time.Sleep(15 * time.Second)
		a.kill()
		time.Sleep(D)
		ctx := context.Background()
		e, err := c.store.Read(ctx, "soloist/work")
		if err != nil {
			t.Fatal(err)
		}
		r := c.record("work")
		r.Definition.Mark = store.Mark{Spec: "older", Since: r.Definition.Since.Add(-time.Hour)}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		l := c.store.Lease("soloist/work", "7c0a1c1e-0000-4000-8000-000000000001")
		if _, err := l.Acquire(ctx, D, e.ETag); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Write(ctx, e.ETag, b); err != nil {
			t.Fatal(err)
		}
		c.start("b", work("@every 10s", time.Second))
		time.Sleep(3 * D)
		if r := c.record("work"); r.Definition.Mark.Spec != "" || r.Run.Replica != "b" {
			t.Errorf("b does not go on: %+v", r)
		}
	})
}

// The storage is in reach for a replica that may lease an entry and not write it:
// a mark that is refused is that job's trouble.
func TestRefusedMarkIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10s", 0))
		time.Sleep(offTick)
		young := c.start("young", work("0 0 1 7 *", 0))
		time.Sleep(20 * time.Second)
		young.stop()
		old.tap.meet(failWrites(fs.ErrPermission))
		time.Sleep(20 * time.Minute)
		if h := old.Health(); h.Storage != nil || !errors.Is(h.Broken["work"], fs.ErrPermission) {
			t.Errorf("health is %+v", h)
		}
		old.tap.meet(nil)
		healed := time.Now()
		time.Sleep(time.Minute + takenBack + 2*D)
		if len(ranBy(c, "old", healed)) == 0 {
			t.Errorf("not taken back once it may write: %v", old.Health().Broken)
		}
		if len(old.Health().Broken) > 0 {
			t.Errorf("health is %v", old.Health().Broken)
		}
	})
}

// A replica that may not even lease the entry does not say that it may.
func TestMarkWithoutLeaseIsNotTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10s", 0))
		time.Sleep(offTick)
		c.start("young", work("0 0 1 7 *", 0))
		old.tap.meet(fail(fs.ErrPermission, "acquire"))
		old.tap.counts()
		time.Sleep(20 * time.Minute)
		if n := old.tap.counts()["acquire"]; n < 3 {
			t.Errorf("it has asked for the lease %d times", n)
		}
		old.wantLines(0, "may lease the entry")
	})
}

// A replica that leaves the job to another definition tells when an outage is over.
func TestYieldingReplicaTellsEndOfOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@hourly", 0))
		time.Sleep(10 * time.Second)
		c.start("young", work("@every 2m", 0))
		time.Sleep(5 * time.Minute)
		old.tap.meet(fail(errNetwork))
		time.Sleep(2 * time.Minute)
		if old.Health().Storage == nil {
			t.Error("health tells nothing of the outage")
		}
		old.tap.meet(nil)
		time.Sleep(3 * time.Minute)
		if h := old.Health(); h.Storage != nil || h.Broken["work"] == nil {
			t.Errorf("got %v and %v, want only that another definition is in force", h.Storage, h.Broken)
		}
	})
}

// The definition of the replica that started last is in force, also where its first
// answer takes longer than its lead.
func TestYoungestIsInForceDespiteSlowStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old, young := work("@every 1m", 0), work("@every 2m", 0)
		old.Lease, young.Lease = time.Minute, time.Minute
		time.Sleep(10 * time.Second)
		c.start("old", old)
		time.Sleep(5 * time.Second)
		r := c.replica("young", young)
		var calls atomic.Int64
		r.tap.meet(func(_ string, apply func() error) error {
			err := apply()
			if calls.Add(1) == 1 {
				time.Sleep(8 * time.Second)
			}
			return err
		})
		c.launch(r)
		time.Sleep(10 * time.Minute)
		if err := r.Health().Broken["work"]; err != nil {
			t.Errorf("the younger replica says %v", err)
		}
	})
}

// startedInAnOutage is a replica whose wall clock is two hours ahead, and whose
// calls of the first minute fail.
func startedInAnOutage(c *cluster) *replica {
	r := c.launch(c.replica("old", work("@every 10s", 0)).skewed(2 * time.Hour).meets(fail(context.DeadlineExceeded)))
	time.Sleep(time.Minute)
	r.tap.meet(nil)
	time.Sleep(time.Minute)
	return r
}

// A replica whose first calls fail has nothing but its wall clock, and must not
// tell others by that when it started.
func TestStartInOutageIgnoresWallClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		startedInAnOutage(c)
		if since := c.record("work").Definition.Since; since.After(time.Now()) {
			t.Errorf("the record says that a replica started at %s, and it is %s", since, time.Now().UTC())
		}
		c.start("young", work("@every 7s", 0))
		time.Sleep(time.Minute)
		for _, r := range c.all() {
			if r.replica == "young" {
				return
			}
		}
		t.Error("the younger definition does not count")
	})
}

// If such a replica is gone, others must not look for it in a circle.
func TestYoungerFollowsReplicaOfTheFuture(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := startedInAnOutage(c)
		old.stop()
		c.start("young", work("@every 7s", 0))
		time.Sleep(10 * time.Minute)
		if runs := c.all(); runs[len(runs)-1].replica != "young" || time.Since(runs[len(runs)-1].start) > time.Minute {
			t.Errorf("the younger one does not run: %+v", runs[len(runs)-1])
		}
	})
}
