package soloist_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A hold-off that is cut short again and again is not started anew each time:
// short wake-ups get through it in the end.
func TestAHoldOffIsNotStartedAnew(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1h", 50*time.Minute)
		job.Lease, job.Interrupted = time.Minute, soloist.Rerun
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Second)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil {
			c.t.Fatal(err)
		}
		job.Do = nil
		b := c.replica("b", job)
		for range 3 {
			ctx, cancel := context.WithTimeout(c.t.Context(), 50*time.Second)
			_, _ = b.RunDue(ctx)
			cancel()
		}
		runs := c.all()
		if len(runs) != 2 {
			c.t.Fatalf("got %d runs", len(runs))
		}
		if !runs[0].end.Before(runs[1].start) {
			t.Errorf("%s runs until %s, %s from %s", runs[0].replica, runs[0].end, runs[1].replica, runs[1].start)
		}
	})
}
