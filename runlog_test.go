package soloist_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// Each line of a run's own log names the run.
func TestLinesOfARunNameIt(t *testing.T) {
	says := func(_ context.Context, run *soloist.Run) error {
		run.Log.Info("at work")
		return nil
	}
	job := work("0 * * * *", D)
	job.Do = says
	inCluster(t, func(c *cluster) {
		a := c.start("a", job, soloist.Singleton{Name: "lead", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			_ = says(ctx, run)
			<-ctx.Done()
			return nil
		}})
		time.Sleep(time.Hour + time.Second)
		if _, err := a.RunNow(c.t.Context(), "work", "ticket-7"); err != nil {
			c.t.Fatal(err)
		}
		a.stop()
		lines := a.log.lines("at work")
		for i, want := range [][]string{
			{"job=lead", "token="},
			{"job=work", "tick=2000-01-01T01:00:00Z", "attempt=1", "token="},
			{"job=work", "tick=2000-01-01T01:00:01Z", "request=ticket-7", "token="},
		} {
			for _, part := range want {
				if i >= len(lines) || !strings.Contains(lines[i], part) {
					c.t.Fatalf("line %d of %q lacks %s", i, lines, part)
				}
			}
		}
		if strings.Contains(lines[0], "tick=") {
			c.t.Errorf("a singleton has no tick: %s", lines[0])
		}
	})
}

// Remaining tells how long a run may go on for sure: for so long does it go on if
// no renewal succeeds any more.
func TestRemaining(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0:               D - D/100 - D/6,
		5 * time.Second: 5 * time.Second,
		time.Hour:       D - D/100 - D/6,
	} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", D)
			job.Timeout = timeout
			var r *replica
			var left, took time.Duration
			job.Do = func(ctx context.Context, run *soloist.Run) error {
				r.tap.cut.Store(true)
				asked := time.Now()
				left = run.Remaining()
				<-ctx.Done()
				took = time.Since(asked)
				return nil
			}
			r = c.replica("a", job)
			c.launch(r)
			time.Sleep(time.Hour + time.Minute)
			c.stopAll()
			if left != want || took != want {
				c.t.Errorf("with a time-out of %s: %s remain and the run took %s, want %s", timeout, left, took, want)
			}
		})
	}
}
