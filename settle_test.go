package soloist_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A call that has no time for a run settles what it would not run anyway: else a
// platform whose calls are all short would never record those ticks.
func TestACallTooShortForARunSettlesTicks(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*soloist.Job)
		dies     bool // the runner of the tick at 01:00, five minutes after it
		want     []string
		withheld bool // the report says that a run was not started
	}{
		"paused":      {func(j *soloist.Job) { j.Paused = true }, false, []string{"skipped 00:00:00-02:00:00 paused"}, false},
		"missed":      {func(j *soloist.Job) { j.StartingDeadline = time.Minute }, false, []string{"missed 00:00:00-02:00:00 past the starting deadline"}, false},
		"due":         {func(*soloist.Job) {}, false, []string{"missed 01:00:00 a newer one was due"}, true},
		"all are due": {func(j *soloist.Job) { j.Missed = soloist.RunAll }, false, nil, true},
		"its runner died": {func(*soloist.Job) {}, true,
			[]string{"abandoned 01:00:00 its runner died"}, true},
		"its runner died, and it has another attempt": {func(j *soloist.Job) { j.Interrupted = soloist.Rerun }, true, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("@hourly", 20*time.Minute)
				job.Timeout = 30 * time.Minute
				tt.change(&job)
				a := c.replica("a", job)
				if tt.dies {
					c.launch(a)
					time.Sleep(time.Hour + 5*time.Minute)
					a.kill()
				} else {
					a.RunDue(c.t.Context(), soloist.Wake{})
					time.Sleep(time.Hour + 5*time.Minute)
				}
				time.Sleep(time.Hour)
				runs := len(c.all())
				b := c.replica("b", job)
				for range 2 {
					ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
					defer cancel()
					_, err := b.RunDue(ctx, soloist.Wake{})
					if withheld := err != nil && strings.Contains(err.Error(), "not started: it may take 30m0s"); withheld != tt.withheld || !withheld && err != nil {
						t.Errorf("the error is %v", err)
					}
				}
				if got := c.outcomes("work"); !slices.Equal(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if len(c.all()) > runs {
					t.Error("it ran in a call that is shorter than its Timeout")
				}
				time.Sleep(30 * time.Minute)
				c.replica("c", job).RunDue(c.t.Context(), soloist.Wake{})
				if ran := len(c.all()) > runs; ran != tt.withheld {
					t.Errorf("in a call without a deadline it ran: %t", ran)
				}
			})
		})
	}
}
