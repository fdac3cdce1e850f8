package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// around returns what each run of a job knew of the ticks around its own: its tick or request, its
// attempt, and the ticks before and after.
func (c *cluster) around(job string) (all []string) {
	clock := func(at time.Time) string {
		if at.IsZero() {
			return "none"
		}
		return at.Format(time.TimeOnly)
	}
	for _, r := range c.runsOf(job) {
		of := r.Request
		if of == "" {
			of = clock(r.Tick)
		}
		all = append(all, fmt.Sprintf("%s/%d: %s, %s", of, r.Attempt, clock(r.Previous), clock(r.Next)))
	}
	return all
}

func (c *cluster) wantAround(job string, want ...string) {
	c.t.Helper()
	if got := c.around(job); !slices.Equal(got, want) {
		c.t.Errorf("%s:\ngot  %q\nwant %q", job, got, want)
	}
}

// failingAt returns a job that fails at the ticks of these hours.
func failingAt(hours ...int) soloist.Job {
	return doing("@hourly", func(_ context.Context, run *soloist.Run) error {
		if slices.Contains(hours, run.Tick.Hour()) {
			return errors.New("boom")
		}
		return nil
	})
}

// A run knows the last tick that succeeded, on whichever replica, and the next one. A run by hand
// knows it too, and is none.
func TestPreviousIsTheLastTickThatSucceeded(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		inCase(t, fmt.Sprint("ahead ", ahead), func(t *testing.T, c *cluster) {
			job := failingAt(2, 3)
			job.ClaimAhead = ahead
			a := c.start("a", job)
			until(2*time.Hour + time.Minute)
			if _, err := a.RunNow(c.t.Context(), "work", "by-hand"); err != nil {
				t.Error(err)
			}
			a.stop()
			c.start("b", job)
			until(5*time.Hour + time.Minute)
			c.wantAround("work", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "by-hand/1: 01:00:00, 03:00:00",
				"03:00:00/1: 01:00:00, 04:00:00", "04:00:00/1: 01:00:00, 05:00:00", "05:00:00/1: 04:00:00, 06:00:00")
		})
	}
}

// Each attempt of a tick knows the same, on whichever replica.
func TestPreviousOfAFurtherAttempt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(doing("@hourly", func(ctx context.Context, run *soloist.Run) error {
			if run.Tick.Hour() == 2 && run.Attempt == 1 {
				return pause(ctx, time.Hour/2)
			}
			return nil
		}))
		a := c.start("a", job)
		until(2*time.Hour + time.Minute)
		c.start("b", job)
		a.stop()
		until(3*time.Hour + time.Minute)
		c.wantAround("work", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "02:00:00/2: 01:00:00, 03:00:00", "03:00:00/1: 02:00:00, 04:00:00")
	})
}

// The record keeps the tick however much its history has lost.
func TestPreviousOutlivesTheHistory(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", doing("* * * * *", func(_ context.Context, run *soloist.Run) error {
			if run.Tick.Minute() == 1 {
				return nil
			}
			return errors.New("boom")
		}))
		until(50*time.Minute + time.Second)
		last := c.all()[len(c.all())-1]
		if rec := c.record("work"); last.Previous.Minute() != 1 || slices.ContainsFunc(rec.History, func(o store.Outcome) bool { return o.Status == store.Succeeded }) {
			t.Errorf("got %s, with the history %+v", last.Previous, rec.History)
		}
	})
}

// What a program wrote that does not know the field is found in the history, also if that program
// has left an older one as it was.
func TestPreviousOfARecordOfAProgramBefore(t *testing.T) {
	for name, past := range map[string]string{"no field": "", "an older one": `"past":{"succeeded":"1999-12-31T20:00:00Z"},`} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			c.start("a", failingAt())
			until(time.Hour + time.Minute)
			c.stopAll()
			written := string(c.raw("work"))
			i := strings.Index(written, `"past":`)
			end := i + strings.Index(written[i:], "},") + 2
			c.deleteEntry()
			c.createEntry(written[:i] + past + written[end:])
			c.start("b", failingAt())
			until(2*time.Hour + time.Minute)
			c.wantAround("work", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00")
		})
	}
}

// A job without a record knows what has succeeded in its process.
func TestPreviousOnEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := here("@hourly", func(_ context.Context, run *soloist.Run) error {
			if run.Tick.Hour() == 2 {
				return errors.New("boom")
			}
			return nil
		})
		a := c.start("a", job)
		until(2*time.Hour + time.Minute)
		if _, err := a.RunNow(c.t.Context(), "here", "by-hand"); err != nil {
			t.Error(err)
		}
		a.stop()
		c.start("b", job)
		until(4*time.Hour + time.Minute)
		c.wantAround("here", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "by-hand/1: 01:00:00, 03:00:00",
			"03:00:00/1: none, 04:00:00", "04:00:00/1: 03:00:00, 05:00:00")
	})
}

// Each shard counts for itself, and an entry that is made anew knows of no tick. A singleton has none.
func TestPreviousOfShardsAndOfANewEntry(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("@hourly", func(_ context.Context, run *soloist.Run) error {
			if run.Shard == 1 && run.Tick.Hour() == 2 {
				return errors.New("boom")
			}
			return nil
		})
		job.Shards = 2
		r := c.start("a", job, lead("leader"))
		until(3*time.Hour + time.Minute)
		c.wantAround("work-0", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "03:00:00/1: 02:00:00, 04:00:00")
		c.wantAround("work-1", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "03:00:00/1: 01:00:00, 04:00:00")
		c.wantAround("leader", "none/1: none, none")
		r.stop()
		if err := c.store.Delete(c.t.Context(), "soloist/work-0"); err != nil {
			t.Fatal(err)
		}
		c.start("b", job)
		until(4*time.Hour + time.Minute)
		if got := c.around("work-0"); got[len(got)-1] != "04:00:00/1: none, 05:00:00" {
			t.Errorf("got %q", got)
		}
	})
}

// A run of a backfill is for the time between the tick before and its own.
func TestPreviousInABackfill(t *testing.T) {
	for name, parallel := range map[string]int{"one at a time": 1, "two at a time": 2} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := failingAt(2)
			c.start("a", w)
			until(4*time.Hour + time.Minute)
			from := time.Now().Truncate(time.Hour).Add(-3 * time.Hour)
			c.fills(soloist.Backfill{From: from, To: from.Add(2 * time.Hour), All: true, Parallel: parallel}, w)
			time.Sleep(time.Minute)
			for _, r := range c.filled() {
				if !r.Previous.Equal(r.Tick.Add(-time.Hour)) || !r.Next.Equal(r.Tick.Add(time.Hour)) {
					t.Errorf("tick %s is given %s and %s", r.Tick, r.Previous, r.Next)
				}
			}
			if n := len(c.filled()); n != 3 {
				t.Errorf("%d runs", n)
			}
		})
	}
}
