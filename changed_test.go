package soloist_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A schedule is edited while the tick at 01:00:00 is due. If that tick is also the
// newest of the new schedule, it is owed as after a restart; else the new schedule
// counts from the moment of the change.
func TestATickThatBothSchedulesNameIsOwed(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
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
		})
	}
}

// The record of a job that was not run for days names a tick of that time. The
// ticks of a new schedule since then came due under no definition that was in
// force, so RunAll does not run them.
func TestAChangedScheduleMakesUpNoOlderTicks(t *testing.T) {
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
func TestASingletonThatBecomesAJobOwesNothing(t *testing.T) {
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
func TestATickThatBothSchedulesNameIsOwedAfterAStoppedRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long := work("@every 10m", 0)
		long.Interrupted = soloist.Rerun
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
		young := work("@every 20m", 0)
		young.Interrupted = soloist.Rerun
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
func TestATickThatBothSchedulesNameIsOwedByANewJob(t *testing.T) {
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
