package soloist_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// queuing returns the jobs of a group under QueueOne: "work" on the hour, which takes 70 minutes, and "other", which
// takes 30.
func queuing(other string, deadline time.Duration) []soloist.Work {
	long := overlapping(soloist.QueueOne, "@hourly", 70*time.Minute)
	short := named("other", work(other, 30*time.Minute))
	long.Group, long.StartingDeadline = "imports", deadline
	short.Group, short.Overlap = "imports", soloist.QueueOne
	return []soloist.Work{long, short}
}

// oneByOne checks that the runs of all jobs were one after the other, and that each tick ran once.
func (c *cluster) oneByOne() {
	c.t.Helper()
	if got := atOnce(c.all()); got != 1 {
		c.t.Errorf("%d runs at once", got)
	}
	seen := map[string]bool{}
	for _, r := range c.all() {
		tick := r.Job + r.Tick.Format(" 15:04:05")
		if seen[tick] {
			c.t.Errorf("%s ran twice", tick)
		}
		seen[tick] = true
	}
}

// A tick that has waited for the end of a run waits for a slot of the group then, which another job may have before it.
func TestQueuedTickWaitsForSlot(t *testing.T) {
	for name, tt := range map[string]struct {
		other    string
		deadline time.Duration
		want     []string
	}{
		"free":                    {"0 30 12 * * *", 0, []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}},
		"taken by the other":      {"0 9,10 2 * * *", 0, []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}},
		"past its deadline there": {"0 9,10 2 * * *", 20 * time.Minute, []string{"succeeded 01:00:00", "skipped 02:00:00 group imports", "succeeded 03:00:00"}},
		"past its deadline":       {"0 9,10 2 * * *", 5 * time.Minute, []string{"succeeded 01:00:00", "missed 02:00:00 past the starting deadline", "succeeded 03:00:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.limited(name, 1, queuing(tt.other, tt.deadline)...)
			}
			until(6 * time.Hour)
			if got := c.outcomes("work"); !slices.Equal(got[:min(len(got), 3)], tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			c.oneByOne()
			if next := c.all()[1]; next.Job == "other" != (name != "free") {
				t.Errorf("%s has the slot after the first run", next.Job)
			}
		})
	}
}

// The runner dies while a tick waits for its run, and another job has the slot after it.
func TestQueuedTickOutlivesDeathInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := map[string]*replica{}
		for _, name := range []string{"a", "b", "c"} {
			all[name] = c.limited(name, 1, queuing("0 5 2 * * *", 0)...)
		}
		until(2*time.Hour + 6*time.Minute)
		all[c.all()[0].replica].kill()
		until(2*time.Hour + 50*time.Minute)
		runs := c.all()
		if len(runs) != 3 || runs[1].start.After(time.Date(2000, 1, 1, 2, 7, 30, 0, time.UTC)) || runs[2].start.Sub(runs[1].end) > 10*time.Second && runs[1].Job == "other" {
			t.Errorf("got %+v", runs)
		}
		until(6 * time.Hour)
		got := c.outcomes("work")
		if want := []string{"abandoned 01:00:00 its runner died", "succeeded 02:00:00"}; !slices.Equal(got[:min(len(got), 2)], want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.oneByOne()
	})
}

// Four jobs share one slot, which has room for a third of their ticks. Each job has its turn, and the slot is never free for
// long.
func TestQueuedTicksShareSlot(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var jobs []soloist.Work
		for _, w := range inGroup(4, "@every 1m", 50*time.Second) {
			job := w.(soloist.Job)
			job.Overlap = soloist.QueueOne
			jobs = append(jobs, job)
		}
		for _, name := range []string{"a", "b"} {
			c.limited(name, 1, jobs...)
		}
		until(40 * time.Minute)
		runs := c.all()
		c.oneByOne()
		if len(runs) < 40 {
			t.Errorf("%d runs in 40 minutes: the slot was free in between", len(runs))
		}
		for _, w := range jobs {
			name := w.(soloist.Job).Name
			n := 0
			for _, r := range runs {
				if r.Job == name {
					n++
				}
			}
			if n < 2 {
				t.Errorf("%s had %d of %d runs", name, n, len(runs))
			}
			for _, o := range c.outcomes(name) {
				if !strings.HasPrefix(o, "succeeded") && !strings.HasPrefix(o, "skipped") && !strings.Contains(o, "a newer one was due") {
					t.Errorf("%s: %s", name, o)
				}
			}
		}
	})
}

// A call of RunDue runs the tick that has waited for its run and then for the slot.
func TestRunDueRunsQueuedTickInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", queuing("0 30 1 * * *", 0)...)
		r.Groups = map[string]int{"imports": 1}
		r.wake()
		until(time.Hour)
		if _, err := r.RunDue(context.Background(), soloist.Wake{}); err != nil {
			t.Error(err)
		}
		r.wake()
		c.oneByOne()
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00", "succeeded 02:00:00"}; !slices.Equal(got[:min(2, len(got))], want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := c.outcomes("other"); !slices.Contains(got, "succeeded 01:30:00") {
			t.Errorf("got %q", got)
		}
	})
}
