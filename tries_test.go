package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// failing returns a job that fails n times, with err, and then does not.
func failing(n int, err error) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "@every 1h", Lease: D, MaxTries: 4, Backoff: 10 * time.Second,
		Do: func(_ context.Context, run *soloist.Run) error {
			if run.Try <= n {
				return err
			}
			return nil
		}}
}

func TestTries(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		job     soloist.Job
		pauses  [][2]time.Duration // the shortest and the longest before each further try
		outcome string
	}{
		"once is enough":  {failing(0, boom), nil, "succeeded 01:00:00"},
		"again":           {failing(2, boom), [][2]time.Duration{{5 * time.Second, 10 * time.Second}, {10 * time.Second, 20 * time.Second}}, "succeeded 01:00:00"},
		"until none left": {failing(9, boom), [][2]time.Duration{{5 * time.Second, 10 * time.Second}, {10 * time.Second, 20 * time.Second}, {20 * time.Second, 40 * time.Second}}, "failed 01:00:00 boom"},
		"permanent":       {failing(9, fmt.Errorf("wrapped: %w", soloist.Permanent(boom))), nil, "failed 01:00:00 wrapped: boom"},
		"skip":            {failing(9, soloist.Skip("empty")), nil, "skipped 01:00:00 empty"},
		"told when":       {failing(1, soloist.RetryAfter(boom, time.Minute)), [][2]time.Duration{{time.Minute, time.Minute}}, "succeeded 01:00:00"},
		"nothing wrong":   {failing(9, errors.Join(soloist.Permanent(nil), soloist.RetryAfter(nil, 1))), nil, "succeeded 01:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.start("a", tt.job)
				c.start("b", tt.job)
				time.Sleep(time.Hour + 5*time.Minute)
				runs := c.all()
				if len(runs) != len(tt.pauses)+1 {
					t.Fatalf("%d tries, want %d", len(runs), len(tt.pauses)+1)
				}
				for i, limits := range tt.pauses {
					pause := runs[i+1].start.Sub(runs[i].end)
					if pause < limits[0] || pause > limits[1] {
						t.Errorf("the pause before try %d is %s, want %s to %s", i+2, pause, limits[0], limits[1])
					}
					if runs[i+1].Try != i+2 || runs[i+1].Token != runs[i].Token || runs[i+1].replica != runs[i].replica {
						t.Errorf("try %d: got %+v", i+2, runs[i+1].Run)
					}
				}
				if got := c.outcomes("work"); !slices.Equal(got, []string{tt.outcome}) {
					t.Errorf("got %q, want %q", got, tt.outcome)
				}
			})
		})
	}
}

func TestEachTryHasItsTimeout(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", soloist.Job{Name: "work", Schedule: "@every 1h", Lease: D, MaxTries: 2, Timeout: time.Minute,
			Do: func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }})
		time.Sleep(time.Hour + 5*time.Minute)
		runs := c.all()
		if len(runs) != 2 || runs[1].end.Sub(runs[1].start) != time.Minute || !errors.Is(runs[1].cause, soloist.ErrTimeout) {
			t.Errorf("got %+v", runs)
		}
	})
}

func TestAStopBetweenTriesIsNoFailure(t *testing.T) {
	for policy, want := range map[soloist.InterruptedPolicy][]string{
		soloist.Abandon: {"abandoned 01:00:00 stopped after try 1: boom"},
		soloist.Rerun:   {"succeeded 01:00:00"},
	} {
		inCluster(t, func(c *cluster) {
			job := failing(1, errors.New("boom"))
			job.Interrupted = policy
			a := c.start("a", job)
			time.Sleep(time.Hour + 2*time.Second)
			begin := time.Now()
			a.stop()
			if took := time.Since(begin); took > time.Second {
				t.Errorf("it stopped after %s", took)
			}
			job = failing(0, nil)
			job.Interrupted = policy
			c.start("b", job)
			time.Sleep(time.Minute)
			if got := c.outcomes("work"); !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", policy, got, want)
			}
		})
	}
}

func TestALostLeaseEndsTheTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := failing(9, soloist.RetryAfter(errors.New("boom"), 4*time.Minute))
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Second)
		a.kill()
		time.Sleep(10 * time.Minute)
		if got := c.all(); len(got) != 1 {
			t.Errorf("%d tries without a lease", len(got)-1)
		}
	})
}

func TestEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "cache", Schedule: "@every 10s", EveryReplica: true, MaxTries: 2, Backoff: time.Second,
			Do: func(_ context.Context, run *soloist.Run) error {
				if run.Token != 0 || run.Attempt != 1 {
					t.Errorf("got %+v", run)
				}
				if run.Try == 1 && run.Tick.Second() == 20 {
					return errors.New("boom")
				}
				return nil
			}}
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(35 * time.Second)
		ticks := map[string][]string{}
		for _, r := range c.all() {
			ticks[r.replica] = append(ticks[r.replica], r.Tick.Format("05"))
		}
		for _, name := range []string{"a", "b"} {
			if want := []string{"10", "20", "20", "30"}; !slices.Equal(ticks[name], want) {
				t.Errorf("%s ran %q, want %q", name, ticks[name], want)
			}
		}
		for _, r := range []*replica{a, b} {
			if got := r.tap.counts(); len(got) != 0 {
				t.Errorf("it asked the store: %v", got)
			}
		}
		status, err := a.Status(c.t.Context())
		if err != nil || !status[0].EveryReplica || status[0].Next.Second() != 40 {
			t.Errorf("status: %+v, %v", status, err)
		}
		report, err := c.replica("c", job).RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(report.Jobs[0].Ran) != 1 || report.Jobs[0].Ran[0].Tick.Second() != 30 || report.Next.Second() != 40 {
			t.Errorf("RunDue: %+v, %v", report, err)
		}
	})
}

func TestAStopEndsARunEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", time.Hour)
		job.Lease, job.EveryReplica = 0, true
		a := c.start("a", job)
		time.Sleep(15 * time.Second)
		a.stop()
		if got := c.all(); len(got) != 1 || !errors.Is(got[0].cause, soloist.ErrStopped) {
			t.Errorf("got %+v", got)
		}
	})
}

// A Backoff so long that its double does not fit a time.Duration counts as the
// longest pause.
func TestALongBackoffIsTheLongestPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.MaxTries, job.Backoff = 4, math.MaxInt64
		job.Do = func(context.Context, *soloist.Run) error { return errors.New("no") }
		c.start("a", job)
		time.Sleep(90 * time.Minute)
		if n := len(c.all()); n != 4 {
			t.Errorf("%d tries, want 4", n)
		}
	})
}
