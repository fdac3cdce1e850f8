package soloist_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// hourly is a job whose first attempt takes three hours, and each further one
// as long as further.
func hourly(window, further time.Duration) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "@hourly", Lease: D, StartingDeadline: window, Interrupted: soloist.Rerun,
		Do: func(ctx context.Context, run *soloist.Run) error {
			takes := further
			if run.Tick.Hour() == 1 && run.Tick.Day() == 1 && run.Attempt == 1 {
				takes = 3 * time.Hour
			}
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
}

// Two days after its runner was gone, with the newest tick five minutes old, a
// tick is run again only where its starting deadline allows it. Overlap is told
// of the ticks alone that came due under a run.
func TestAFurtherAttemptHasTheStartingDeadline(t *testing.T) {
	const late = "the starting deadline has passed"
	for name, tt := range map[string]struct {
		stopped bool // in good order; else the runner dies
		window  time.Duration
		further time.Duration
		want    []string
	}{
		"died, past the deadline": {false, 10 * time.Minute, 0, []string{"abandoned 01:00:00 its runner died, and " + late,
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"stopped, past the deadline": {true, 10 * time.Minute, 0, []string{"abandoned 01:00:00 not run again: " + late,
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"no deadline, and nothing due under it": {false, 0, 10 * time.Minute, []string{"succeeded 01:00:00",
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"no deadline, two ticks due under it": {false, 0, 2 * time.Hour, []string{"succeeded 01:00:00",
			"missed 01:00:00-02:00:00 a newer one was due", "skipped 02:00:00-04:00:00 overlap"}},
		"within the deadline, and nothing due under it": {false, 50 * time.Hour, 10 * time.Minute, []string{"succeeded 01:00:00",
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"within the deadline, one tick due under it": {false, 50 * time.Hour, 58 * time.Minute, []string{"succeeded 01:00:00",
			"missed 01:00:00-02:00:00 a newer one was due", "skipped 03:00:00 overlap"}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				a := c.start("a", hourly(tt.window, tt.further))
				time.Sleep(time.Hour + 2*time.Minute)
				if !tt.stopped {
					a.kill()
				}
				a.stop()
				time.Sleep(49*time.Hour + 3*time.Minute)
				c.start("b", hourly(tt.window, tt.further))
				time.Sleep(2*time.Hour + 50*time.Minute)
				if got := c.outcomes("work"); len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) {
					t.Errorf("got  %q\nwant %q", got, tt.want)
				}
				if lines := overlapsWithout(c.record("work"), c.all(), time.Hour); len(lines) > 0 {
					t.Errorf("overlap is told of %q", lines)
				}
			})
		})
	}
}

// overlapsWithout are the ticks, of a job that is due at each multiple of every,
// that are said to have come due under a run, and did not.
func overlapsWithout(r store.Record, runs []ran, every time.Duration) (all []string) {
	for _, f := range r.History {
		from := f.From
		if from.IsZero() {
			from = f.Tick.Add(-every)
		}
		for tick := from.Add(every); f.Reason == "overlap" && !tick.After(f.Tick); tick = tick.Add(every) {
			if !slices.ContainsFunc(runs, func(r ran) bool { return !tick.Before(r.start) && (r.end.IsZero() || !tick.After(r.end)) }) {
				all = append(all, tick.Format(time.RFC3339))
			}
		}
	}
	return all
}

// A tick that stalled has the deadline too.
func TestAStalledTickHasTheStartingDeadline(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := hourly(10*time.Minute, 0)
		job.HeartbeatTimeout = 11 * time.Minute
		c.start("a", job)
		c.start("b", job)
		time.Sleep(time.Hour + 15*time.Minute)
		if got := c.outcomes("work"); len(got) != 1 || !strings.HasPrefix(got[0], "stalled 01:00:00 not run again: the starting deadline") {
			t.Errorf("got %q", got)
		}
		if n := len(c.all()); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}
