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
			_, _ = b.RunDue(ctx, soloist.Wake{})
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

// A step-down does not wait for the end of a hold-off.
func TestAStepDownEndsAHoldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1h", 50*time.Minute)
		job.Lease, job.Interrupted = time.Minute, soloist.Rerun
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Second)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil {
			c.t.Fatal(err)
		}
		b := c.start("b", job)
		time.Sleep(5 * time.Second)
		if len(b.log.lines("did not run out by itself")) != 1 {
			t.Fatalf("b does not hold off: %q", b.log.lines(""))
		}
		begin := time.Now()
		if err := b.StepDown(c.t.Context(), "work"); err != nil || time.Since(begin) > time.Second {
			t.Errorf("stepped down after %s: %v", time.Since(begin), err)
		}
	})
}

// After a deletion the next holder holds off for the longest lease that it has
// seen, though the record that it makes names a shorter one.
func TestHoldOffAfterADeletionWithMixedLeases(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, short := work("@every 10s", 50*time.Minute), work("@every 10s", time.Second)
		long.Lease, long.Interrupted, short.Interrupted = time.Minute, soloist.Rerun, soloist.Rerun
		a := c.start("a", long)
		time.Sleep(15 * time.Second)
		c.start("b", short)
		time.Sleep(16 * time.Second) // a has just renewed
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil { // which deleting asks for
			t.Fatal(err)
		}
		if err := c.store.Delete(c.t.Context(), "soloist/work"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		runs := c.all()
		if len(runs) < 2 || runs[0].end.IsZero() || runs[0].end.Before(runs[0].start.Add(time.Minute)) {
			t.Fatalf("got %d runs, of which the first ended at %s", len(runs), runs[0].end)
		}
		if runs[1].start.Before(runs[0].end) {
			t.Errorf("%s runs until %s, %s from %s", runs[0].replica, runs[0].end, runs[1].replica, runs[1].start)
		}
	})
}
