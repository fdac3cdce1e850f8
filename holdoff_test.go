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

// The replicas of a younger definition are gone: the older ones wait until a
// tick of theirs is long overdue, and then take the job back.
func TestAYoungerDefinitionThatIsGone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		stays := c.start("stays", work("@every 10s", 0))
		time.Sleep(time.Minute)
		gone := c.start("gone", work("@every 7s", 0))
		time.Sleep(time.Minute)
		gone.stop()
		stopped := time.Now()
		before := len(c.all())
		time.Sleep(time.Minute)
		if n := len(c.all()); n != before {
			t.Errorf("the older one ran %d ticks before the younger one's were overdue", n-before)
		}
		time.Sleep(2 * time.Minute)
		runs := c.all()[before:]
		if len(runs) == 0 {
			c.t.Fatalf("the job does not run any more: %v", stays.Health().Broken)
		}
		if took := runs[0].start.Sub(stopped); took > 2*D+time.Minute+maxLook+20*time.Second {
			t.Errorf("taken back after %s", took)
		}
		if len(stays.log.lines("level=WARN", "takes it back")) != 1 {
			t.Errorf("the log says %q", stays.log.lines("level=WARN"))
		}
		if len(stays.Health().Broken) > 0 {
			t.Errorf("health is %+v", stays.Health())
		}
		// The younger one comes back, as a new replica: the job is its again.
		c.start("back", work("@every 7s", 0))
		time.Sleep(time.Minute)
		for _, r := range c.all()[len(c.all())-5:] {
			if r.replica != "back" {
				t.Errorf("%s runs tick %s", r.replica, r.Tick)
			}
		}
		once(t, c.all())
	})
}

// maxLook is how often a replica looks at a job that is not its own.
const maxLook = 30 * time.Second

// While a run of the younger definition goes on, nobody takes anything back.
func TestAYoungerDefinitionThatRunsLong(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("old", work("@every 10s", 0))
		time.Sleep(time.Minute)
		c.start("young", work("@every 7s", 20*time.Minute))
		time.Sleep(15 * time.Minute)
		runs := c.all()
		if last := runs[len(runs)-1]; last.replica != "young" || !last.end.IsZero() {
			t.Errorf("got %+v", last)
		}
		time.Sleep(10 * time.Minute)
		runs = c.all()
		if last := runs[len(runs)-1]; last.replica != "young" || !last.end.IsZero() {
			t.Errorf("after its end: got %+v", last)
		}
	})
}
