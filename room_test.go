package soloist_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// An unknown field leaves room for a claim and none for the outcome: the job is
// not run, since nothing would tell of that.
func TestARecordWithNoRoomForAnOutcome(t *testing.T) {
	for _, size := range []int{7480, 7540, 7600} {
		inCluster(t, func(c *cluster) {
			job := work("@every 10m", time.Second)
			job.Interrupted = soloist.Rerun
			c.byOthers(map[string]any{"x": strings.Repeat("x", size)})
			a := c.start("a", job)
			time.Sleep(10*time.Minute + 2*time.Second)
			for range 900 {
				time.Sleep(time.Second)
				if why := a.Health().Broken["work"]; why == nil || !strings.Contains(why.Error(), "shorten the record") {
					t.Fatalf("%d: health is %v", size, why)
				}
			}
			if n := len(c.all()); n > 0 {
				t.Errorf("%d: %d runs", size, n)
			}
			if n := a.tap.counts(); n["acquire"] == 0 || n["acquire"] != n["release"] || n["write"] > 1 { // one settles what came due before
				t.Errorf("%d: calls: %v", size, n)
			}
		})
	}
}

// Where there is room for a short outcome, a long one is shortened: the record
// tells that the run failed, and counts it.
func TestALongOutcomeIsShortened(t *testing.T) {
	for _, size := range []int{6200, 6800, 7000, 7100} {
		inCluster(t, func(c *cluster) {
			job := work("@every 1m", 0)
			job.Do = func(_ context.Context, run *soloist.Run) error {
				_ = run.Heartbeat(strings.Repeat("ü", 100))
				return errors.New(strings.Repeat("é", 500))
			}
			c.byOthers(map[string]any{"x": strings.Repeat("x", size)})
			a := c.start("a", job)
			time.Sleep(10*time.Minute + 30*time.Second)
			r := c.record("work")
			if n := int64(len(c.all())); n < 10 || r.Counts[store.Failed] != n || r.Failures != n || r.Status != store.Failed {
				t.Errorf("%d: %d runs failed; the record says %s, and counts %v, %d failures in a row", size, n, r.Status, r.Counts, r.Failures)
			}
			if why := a.Health().Broken["work"]; why != nil {
				t.Errorf("%d: health is %v", size, why)
			}
		})
	}
}
