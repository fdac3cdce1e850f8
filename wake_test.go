package soloist_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// The first wake-up ever is for a tick, which is then run.
func TestAWakeUpOfANewJob(t *testing.T) {
	for name, test := range map[string]struct {
		at, tick time.Duration
		want     []string
	}{
		"on time":          {time.Hour + 300*time.Millisecond, time.Hour, []string{"succeeded 01:00:00"}},
		"late":             {time.Hour + 20*time.Second, time.Hour, []string{"succeeded 01:00:00"}},
		"a moment early":   {time.Hour - 30*time.Millisecond, time.Hour, []string{"succeeded 01:00:00"}},
		"not told":         {time.Hour + 300*time.Millisecond, -1, nil},
		"far too late":     {time.Hour + 10*time.Minute, time.Hour, nil},
		"no tick of its":   {time.Hour + time.Second, time.Hour + time.Second/2, nil},
		"before a tick":    {time.Hour + 10*time.Second, time.Hour - 20*time.Second, nil},
		"in a year's time": {time.Hour, 365 * 24 * time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				begin := time.Now()
				time.Sleep(test.at)
				a := c.replica("a", work("0 * * * *", time.Second))
				var wake soloist.Wake
				if test.tick >= 0 {
					wake.Tick = begin.Add(test.tick)
				}
				called := time.Now()
				if _, err := a.RunDue(c.t.Context(), wake); err != nil {
					t.Errorf("RunDue: %v", err)
				}
				if took := time.Since(called); took > 3*time.Second {
					t.Errorf("it took %s", took)
				}
				if got := c.outcomes("work"); !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A wake-up does not go on from tick to tick until one that it names in the far
// future.
func TestAWakeUpOfATickFarAhead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("* * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		called := time.Now()
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
		defer cancel()
		report, err := a.RunDue(ctx, soloist.Wake{Tick: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)})
		if took := time.Since(called); err != nil || len(report.Jobs) != 1 || len(report.Jobs[0].Ran) != 1 || took > 3*time.Second {
			t.Errorf("got %+v, %v after %s, want the one run that was due", report, err, took)
		}
	})
}

// A timer that fires a moment before the tick gets it run all the same.
func TestAWakeUpThatIsEarly(t *testing.T) {
	inCluster(t, func(c *cluster) {
		begin := time.Now()
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour - 1500*time.Millisecond)
		report, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: begin.Add(time.Hour)})
		if err != nil || len(report.Jobs) != 1 || len(report.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
		if early := begin.Add(time.Hour).Sub(c.all()[0].start); early > time.Second {
			t.Errorf("started %s early", early)
		}
	})
}

// A timer that fires a moment early, when an older tick is due, gets its own tick run
// all the same: the call waits, as if the timer had been on time. A call that comes
// earlier runs the older tick meanwhile.
func TestAWakeUpThatIsEarlyWhenAnOlderTickIsDue(t *testing.T) {
	for name, test := range map[string]struct {
		job   func(*soloist.Job)
		early time.Duration
		want  []string
	}{
		"the newest":           {func(*soloist.Job) {}, 20 * time.Millisecond, []string{"missed 01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"with time for both":   {func(*soloist.Job) {}, 20 * time.Second, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"all":                  {func(j *soloist.Job) { j.Missed = soloist.RunAll }, 1500 * time.Millisecond, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"all, due under a run": {func(j *soloist.Job) { j.Missed = soloist.RunAll }, 8 * time.Second, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"none":                 {func(j *soloist.Job) { j.Missed = soloist.SkipMissed }, 1500 * time.Millisecond, []string{"missed 01:00:00 a newer one was due", "succeeded 02:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				tick := time.Now().Add(2 * time.Hour)
				job := work("@hourly", 10*time.Second)
				test.job(&job)
				a := c.replica("a", job)
				a.RunDue(c.t.Context(), soloist.Wake{})
				until(2*time.Hour - test.early)
				report, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
				if err != nil || len(report.Jobs[0].Ran) == 0 {
					t.Errorf("got %+v, %v", report, err)
				}
				if got := c.outcomes("work"); !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// So does one that comes when the runner of an older tick has died, which is run again.
func TestAWakeUpThatIsEarlyAfterADeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		tick := time.Now().Add(2 * time.Hour)
		job := work("@hourly", 10*time.Second)
		job.Interrupted = soloist.Rerun
		a, b := c.replica("a", job), c.replica("b", job)
		a.RunDue(c.t.Context(), soloist.Wake{})
		until(time.Hour)
		time.AfterFunc(5*time.Second, a.kill)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		a.RunDue(ctx, soloist.Wake{})
		until(2*time.Hour - time.Second)
		report, err := b.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
		if err != nil || len(report.Jobs[0].Ran) != 2 {
			t.Errorf("got %+v, %v, want both ticks", report, err)
		}
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00", "succeeded 02:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Where ticks come due between the call and the tick that it is for, all are run.
func TestAWakeUpThatIsEarlyByMoreThanOneTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 10s", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		until(75 * time.Second)
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: time.Now().Add(25 * time.Second)}); err != nil {
			t.Error(err)
		}
		want := []string{"missed 00:00:00-00:01:00 a newer one was due", "succeeded 00:01:10", "succeeded 00:01:20", "succeeded 00:01:30", "succeeded 00:01:40"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The timer of each instance fires, and one of them runs the tick.
func TestAWakeUpBesideARunOfAnotherReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Second)
		a, b := c.replica("a", job), c.replica("b", job)
		a.RunDue(c.t.Context(), soloist.Wake{})
		b.RunDue(c.t.Context(), soloist.Wake{})
		tick := time.Now().Truncate(time.Hour).Add(time.Hour)
		time.Sleep(time.Until(tick) + time.Second)
		go a.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
		time.Sleep(3 * time.Second)
		report, err := b.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
		if err != nil || len(report.Jobs) != 1 || len(report.Jobs[0].Ran) != 0 || report.Jobs[0].Replica != "a" {
			t.Errorf("got %+v, %v, want that a runs it", report, err)
		}
		time.Sleep(time.Minute)
	})
}

func TestAWakeUpOfSomeJobs(t *testing.T) {
	inCluster(t, func(c *cluster) {
		one, two := work("@every 1m", 0), work("@every 1m", 0)
		two.Name = "other"
		a := c.replica("a", one, two, leader())
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		report, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"other"}})
		if err != nil || len(report.Jobs) != 1 || report.Jobs[0].Job != "other" || len(report.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
		if n := len(c.all()); n != 1 {
			t.Errorf("%d runs", n)
		}
		for _, name := range []string{"nobody", "lead"} {
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{name}}); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
	})
}

// A job that cannot end in time is not started; one that can is.
func TestAJobThatDoesNotFit(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, short := work("@every 1h", time.Second), work("@every 1h", time.Second)
		long.Timeout, short.Timeout, short.Name = 20*time.Minute, time.Minute, "short"
		a := c.replica("a", long, short)
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
		defer cancel()
		report, err := a.RunDue(ctx, soloist.Wake{})
		if err == nil || !strings.Contains(err.Error(), "job work: not started: it may take 20m0s, and this call ends in 10m0s") {
			t.Errorf("got %v", err)
		}
		if len(report.Jobs[0].Ran) != 0 || len(report.Jobs[1].Ran) != 1 {
			t.Errorf("got %+v", report)
		}
		if report, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil || len(report.Jobs[0].Ran) != 1 {
			t.Errorf("without a deadline: got %+v, %v", report, err)
		}
	})
}
