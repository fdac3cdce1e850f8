package soloist_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// here is a job that runs on each replica.
func here(schedule string, do func(context.Context, *soloist.Run) error) soloist.Job {
	return soloist.Job{Name: "here", Schedule: schedule, EveryReplica: true, Do: do}
}

// An EveryReplica job runs on all replicas at once, so its trouble would stop all
// jobs of all replicas. It stays its own.
func TestAnOverrunEverywhereStopsNoOtherJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := here("0 1 0 * * *", func(context.Context, *soloist.Run) error { time.Sleep(18 * time.Minute); return nil })
		deaf.Timeout = 10 * time.Second
		var all []*replica
		for _, name := range []string{"a", "b", "c"} {
			r := c.replica(name, deaf, work("* * * * *", 0))
			r.Overrun = func(string, error) { t.Error("Overrun was called") }
			all = append(all, c.launch(r))
		}
		time.Sleep(10*time.Minute + time.Second)
		for _, r := range all {
			h := r.Health()
			if err := h.Broken["here"]; len(h.Overrun) > 0 || !errors.Is(err, soloist.ErrTimeout) || !strings.Contains(err.Error(), "goes on though its context has ended") {
				t.Errorf("%s: health is %+v", r.Replica, h)
			}
			if len(h.Broken) != 1 {
				t.Errorf("%s: broken are %v, want the job itself alone", r.Replica, h.Broken)
			}
		}
		if got := c.outcomes("work"); len(got) != 10 {
			t.Errorf("got %q, want 10 ticks", got)
		}
		time.Sleep(10 * time.Minute)
		for _, r := range all {
			if h := r.Health(); len(h.Broken) > 0 {
				t.Errorf("%s: its run has returned, and health is %+v", r.Replica, h)
			}
		}
	})
}

// A wake-up during the overrun tells of it.
func TestRunDueTellsOfAnOverrunEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := here("* * * * *", func(context.Context, *soloist.Run) error { time.Sleep(18 * time.Minute); return nil })
		deaf.Timeout = 10 * time.Second
		a := c.launch(c.replica("a", deaf))
		time.Sleep(5 * time.Minute)
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if !errors.Is(err, soloist.ErrTimeout) || got.Jobs[0].Err == nil {
			t.Errorf("got %+v, %v", got, err)
		}
		time.Sleep(15 * time.Minute)
	})
}

// wokenHere makes a replica with an hourly EveryReplica job, and moves time to
// offset after the hour.
func wokenHere(c *cluster, schedule string, offset time.Duration) *replica {
	a := c.replica("a", here(schedule, nil))
	time.Sleep(time.Hour + offset)
	return a
}

// A process that a wake-up starts runs the tick that the wake-up is for.
func TestAColdWakeUpRunsAnEverywhereJob(t *testing.T) {
	hour := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		schedule string
		offset   time.Duration
		wake     soloist.Wake
		want     string // the tick that runs; empty: none
	}{
		"no tick named, in time":            {"@hourly", 5 * time.Second, soloist.Wake{}, "01:00:00"},
		"no tick named, a minute late":      {"@hourly", 61 * time.Second, soloist.Wake{}, ""},
		"no tick named, some were due":      {"@every 10s", 25 * time.Second, soloist.Wake{}, "01:00:20"},
		"a tick named":                      {"@hourly", 5 * time.Second, soloist.Wake{Tick: hour}, "01:00:00"},
		"a tick named, a newer one was due": {"@every 10s", 25 * time.Second, soloist.Wake{Tick: hour}, "01:00:00"},
		"a tick named, early":               {"@hourly", -300 * time.Millisecond, soloist.Wake{Tick: hour}, "01:00:00"},
		"a tick named, too early":           {"@hourly", -2 * time.Minute, soloist.Wake{Tick: hour}, ""},
		"a tick named, too late":            {"@hourly", 2 * time.Minute, soloist.Wake{Tick: hour}, ""},
		"another job's tick named":          {"@hourly", 5 * time.Second, soloist.Wake{Tick: hour.Add(time.Second)}, "01:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				a := wokenHere(c, test.schedule, test.offset)
				got, err := a.RunDue(c.t.Context(), test.wake)
				if err != nil {
					t.Errorf("got %v", err)
				}
				tick := ""
				for _, r := range c.all() {
					tick += r.Tick.Format("15:04:05")
					if r.start.Before(r.Tick) {
						t.Errorf("tick %s was started at %s", r.Tick, r.start)
					}
				}
				if tick != test.want || len(got.Jobs[0].Ran) != len(c.all()) {
					t.Errorf("the ticks %q ran, want %q; the report is %+v", tick, test.want, got)
				}
				if next := got.Jobs[0].Next; !next.After(time.Now()) || next.After(time.Now().Add(time.Hour)) {
					t.Errorf("at %s the next tick is said to be %s", time.Now(), next)
				}
			})
		})
	}
}

// A platform may send a wake-up twice, and beside another.
func TestWakeUpsRunATickOfAnEverywhereJobOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := wokenHere(c, "@hourly", time.Second)
		tick := time.Now().Truncate(time.Hour)
		for _, wake := range []soloist.Wake{{Tick: tick}, {Tick: tick}, {}} {
			if _, err := a.RunDue(c.t.Context(), wake); err != nil {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Second)
		}
		if n := len(c.all()); n != 1 {
			t.Errorf("the tick ran %d times", n)
		}
		time.Sleep(time.Hour)
		a.RunDue(c.t.Context(), soloist.Wake{Tick: tick.Add(time.Hour)})
		if n := len(c.all()); n != 2 {
			t.Errorf("%d runs after the next tick, want 2", n)
		}
	})
}

// A paused job, and one that does not fit into the call.
func TestAWakeUpDoesNotStartAnEverywhereJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		paused, long := here("@hourly", nil), here("@hourly", nil)
		paused.Name, paused.Paused, long.Timeout = "paused", true, time.Hour
		a := c.replica("a", paused, long)
		time.Sleep(time.Hour + time.Second)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		_, err := a.RunDue(ctx, soloist.Wake{})
		if len(c.all()) > 0 || err == nil || !strings.Contains(err.Error(), "job here: not started: it may take 1h0m0s") {
			t.Errorf("%d runs, %v", len(c.all()), err)
		}
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil || len(c.all()) != 1 {
			t.Errorf("a call with enough time: %d runs, %v", len(c.all()), err)
		}
	})
}

// A wake-up that comes late for an older tick leaves the newer one to its own
// wake-up.
func TestALateWakeUpLeavesTheNewerTickEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("*/30 * * * * *", nil))
		begin := time.Now()
		time.Sleep(time.Minute + time.Second)
		for _, tick := range []time.Duration{30 * time.Second, time.Minute, 30 * time.Second, time.Minute} {
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: begin.Add(tick)}); err != nil {
				t.Error(err)
			}
		}
		runs := c.all()
		if len(runs) != 2 || !runs[0].Tick.Equal(begin.Add(30*time.Second)) || !runs[1].Tick.Equal(begin.Add(time.Minute)) {
			t.Errorf("got %d runs, want one of each tick: %+v", len(runs), runs)
		}
	})
}

// A replica that takes nothing new, for a run that goes on after its context has
// ended, takes no ticks of EveryReplica jobs either, and none late.
func TestAReplicaThatTakesNothingNewRunsNothingEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		x := work("@hourly", 0)
		x.Name, x.Timeout = "hangs", time.Minute
		x.Do = func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Minute); return nil }
		a := c.start("a", x, here("*/10 * * * *", nil))
		time.Sleep(65 * time.Minute) // the first run of hangs began at minute 60
		before := len(c.all())
		time.Sleep(80 * time.Minute)
		if n := len(c.all()) - before; n != 0 {
			t.Errorf("%d runs while the replica takes nothing new", n)
		}
		if a.Health().Broken["here"] == nil {
			t.Error("Health does not say why")
		}
		if _, err := a.RunNow(c.t.Context(), "here", "x"); err == nil {
			t.Error("a run by hand is not refused")
		}
		time.Sleep(17 * time.Minute) // hangs has returned at minute 160
		for _, r := range c.all()[before:] {
			if late := r.start.Sub(r.Tick); late > time.Second {
				t.Errorf("%s of %s is %s late", r.Job, r.Tick, late)
			}
		}
		time.Sleep(11 * time.Minute)
		if len(c.all()) == before || a.Health().Broken["here"] != nil {
			t.Errorf("once it takes ticks again: %d runs, %v", len(c.all())-before, a.Health().Broken)
		}
	})
}
