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

// failingAt fails at the ticks of these hours.
func failingAt(hours ...int) func(context.Context, *soloist.Run) error {
	return func(_ context.Context, run *soloist.Run) error {
		if slices.Contains(hours, run.Tick.Hour()) {
			return errors.New("boom")
		}
		return nil
	}
}

// A run knows the last tick that succeeded, on whichever replica, and the next one. So does each attempt, and a manual run, which
// is no tick.
func TestPreviousIsTheLastTickThatSucceeded(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		inCase(t, fmt.Sprint("ahead ", ahead), func(t *testing.T, c *cluster) {
			fails := failingAt(2, 3)
			job := rerun(doing("@hourly", func(ctx context.Context, run *soloist.Run) error {
				if run.Tick.Hour() == 5 && run.Attempt == 1 {
					return pause(ctx, time.Hour/2)
				}
				return fails(ctx, run)
			}))
			job.ClaimAhead = ahead
			a := c.start("a", job)
			until(2*time.Hour + time.Minute)
			if _, err := a.RunNow(c.t.Context(), "work", "manual"); err != nil {
				t.Error(err)
			}
			a.stop()
			b := c.start("b", job)
			until(5*time.Hour + time.Minute)
			b.stop()
			c.start("c", job)
			until(6*time.Hour + time.Minute)
			c.wantAround("work", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "manual/1: 01:00:00, 03:00:00",
				"03:00:00/1: 01:00:00, 04:00:00", "04:00:00/1: 01:00:00, 05:00:00", "05:00:00/1: 04:00:00, 06:00:00",
				"05:00:00/2: 04:00:00, 06:00:00", "06:00:00/1: 05:00:00, 07:00:00")
		})
	}
}

// What a program wrote that does not know the field is found in the history, also if that program
// has left an older one as it was.
func TestPreviousOfARecordOfAProgramBefore(t *testing.T) {
	for name, past := range map[string]string{"no field": "", "an older one": `"past":{"succeeded":"1999-12-31T20:00:00Z"},`} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			c.start("a", doing("@hourly", nil))
			until(time.Hour + time.Minute)
			c.stopAll()
			written := string(c.raw("work"))
			i := strings.Index(written, `"past":`)
			end := i + strings.Index(written[i:], "},") + 2
			c.deleteEntry()
			c.createEntry(written[:i] + past + written[end:])
			c.start("b", doing("@hourly", nil))
			until(2*time.Hour + time.Minute)
			c.wantAround("work", "01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00")
		})
	}
}

// A job without a record knows what has succeeded in its process, and a job whose entry is made again what has since. A singleton
// has no ticks.
func TestPreviousWithoutARecord(t *testing.T) {
	inCluster(t, func(c *cluster) {
		everywhere, job := here("@hourly", failingAt(2)), doing("@hourly", failingAt(2))
		a := c.start("a", everywhere, job, lead("leader"))
		until(2*time.Hour + time.Minute)
		if _, err := a.RunNow(c.t.Context(), "here", "manual"); err != nil {
			t.Error(err)
		}
		a.stop()
		c.deleteEntry()
		c.start("b", everywhere, job)
		until(4*time.Hour + time.Minute)
		before := []string{"01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00"}
		since := []string{"03:00:00/1: none, 04:00:00", "04:00:00/1: 03:00:00, 05:00:00"}
		c.wantAround("work", slices.Concat(before, since)...)
		c.wantAround("here", slices.Concat(before, []string{"manual/1: 01:00:00, 03:00:00"}, since)...)
		c.wantAround("leader", "none/1: none, none")
	})
}
