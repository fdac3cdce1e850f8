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
	return soloist.Job{Name: "here", Schedule: schedule, Everywhere: true, Do: do}
}

// An Everywhere job runs on all replicas at once, so its trouble would stop all
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
		if got := c.fates("work"); len(got) != 10 {
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
		got, err := a.RunDue(c.t.Context())
		if !errors.Is(err, soloist.ErrTimeout) || got.Jobs[0].Err == nil {
			t.Errorf("got %+v, %v", got, err)
		}
		time.Sleep(15 * time.Minute)
	})
}
