package soloist_test

import (
	"context"
	"testing"
	"time"
)

// A replica whose first calls fail has nothing but its wall clock, and must not
// tell others by that when it started.
func TestAStartInAnOutageIsNotToldByTheWallClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.replica("old", work("@every 10s", 0))
		old.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		old.tap.meet(func(string, func() error) error { return context.DeadlineExceeded })
		c.launch(old)
		time.Sleep(time.Minute)
		old.tap.meet(nil)
		time.Sleep(time.Minute)
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
		old := c.replica("old", work("@every 10s", 0))
		old.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		old.tap.meet(func(string, func() error) error { return context.DeadlineExceeded })
		c.launch(old)
		time.Sleep(time.Minute)
		old.tap.meet(nil)
		time.Sleep(time.Minute)
		old.stop()
		c.start("young", work("@every 7s", 0))
		time.Sleep(10 * time.Minute)
		if runs := c.all(); runs[len(runs)-1].replica != "young" || time.Since(runs[len(runs)-1].start) > time.Minute {
			t.Errorf("the younger one does not run: %+v", runs[len(runs)-1])
		}
	})
}
