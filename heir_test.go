package soloist_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// An outage for all, in a rolling deploy: the young ones live.
func TestAnOutageMakesNoHeir(t *testing.T) {
	back := 0
	for phase := range 40 {
		inCluster(t, func(c *cluster) {
			old := c.start("old", work("@every 10s", 0))
			time.Sleep(time.Minute)
			young := c.start("young", work("@every 7s", 0))
			time.Sleep(time.Minute)
			old.tap.cut.Store(true)
			young.tap.cut.Store(true)
			time.Sleep(5*time.Minute + time.Duration(phase)*777*time.Millisecond)
			old.tap.cut.Store(false)
			young.tap.cut.Store(false)
			time.Sleep(2 * time.Minute)
			if len(old.log.lines("takes it back")) > 0 {
				back++
			}
		})
	}
	if back > 0 {
		t.Errorf("after %d of 40 outages of five minutes the old definition is back while the young one lives", back)
	}
}

// Between two runs of a backlog the entry is free, and long overdue.
func TestABacklogMakesNoHeir(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 500*time.Millisecond)
		job.Missed = soloist.RunAll
		old := c.start("old", job)
		time.Sleep(10 * time.Minute)
		old.stop()
		old2 := c.start("old2", job)
		time.Sleep(time.Minute)
		young := work("@every 30s", 2*time.Minute)
		young.Missed = soloist.RunAll
		y := c.start("young", young)
		y.tap.meet(func(op string, apply func() error) error {
			time.Sleep(20 * time.Millisecond)
			defer time.Sleep(20 * time.Millisecond)
			return apply()
		})
		time.Sleep(24 * time.Hour)
		n := 0
		for _, r := range c.all()[11:] {
			if r.replica == "old2" {
				n++
			}
		}
		if len(old2.log.lines("takes it back")) > 0 {
			t.Errorf("taken back from a young one that lives: %d runs %v", n, y.Health().Broken)
		}
	})
}

// A replica that was not well decides by what it reads now.
func TestAnOldRecordMakesNoHeir(t *testing.T) {
	back := 0
	for phase := range 10 {
		inCluster(t, func(c *cluster) {
			hang := soloist.Job{Name: "hang", Schedule: "0 1 0 * * *", Lease: D, Timeout: time.Second,
				Do: func(ctx context.Context, run *soloist.Run) error { time.Sleep(10 * time.Minute); return nil }}
			old := c.start("old", work("@every 10s", 0), hang)
			time.Sleep(50*time.Second + time.Duration(phase)*time.Second)
			c.start("young", work("@every 7s", 0))
			time.Sleep(20 * time.Minute)
			if len(old.log.lines("takes it back")) > 0 {
				back++
			}
		})
	}
	if back > 0 {
		t.Errorf("%d of 10: taken back from a young one that lives", back)
	}
}
