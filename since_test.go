package soloist_test

import (
	"context"
	"testing"
	"time"
)

// startedInAnOutage is a replica whose wall clock is two hours ahead, and whose
// calls of the first minute fail.
func startedInAnOutage(c *cluster) *replica {
	r := c.replica("old", work("@every 10s", 0))
	r.Now = skewed(2 * time.Hour)
	r.tap.meet(func(string, func() error) error { return context.DeadlineExceeded })
	c.launch(r)
	time.Sleep(time.Minute)
	r.tap.meet(nil)
	time.Sleep(time.Minute)
	return r
}

// A replica whose first calls fail has nothing but its wall clock, and must not
// tell others by that when it started.
func TestAStartInAnOutageIsNotToldByTheWallClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		startedInAnOutage(c)
		if since := c.record("work").Since; since.After(time.Now()) {
			t.Errorf("the record says that a replica started at %s, and it is %s", since, time.Now().UTC())
		}
		c.start("young", work("@every 7s", 0))
		time.Sleep(time.Minute)
		for _, r := range c.all() {
			if r.replica == "young" {
				return
			}
		}
		t.Error("the younger definition does not count")
	})
}

// If such a replica is gone, others must not look for it in a circle.
func TestAnHeirOfAReplicaOfTheFuture(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := startedInAnOutage(c)
		old.stop()
		c.start("young", work("@every 7s", 0))
		time.Sleep(10 * time.Minute)
		if runs := c.all(); runs[len(runs)-1].replica != "young" || time.Since(runs[len(runs)-1].start) > time.Minute {
			t.Errorf("the younger one does not run: %+v", runs[len(runs)-1])
		}
	})
}
