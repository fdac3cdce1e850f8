package soloist_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// What kept a run's renewals from getting through is over when its outcome is
// written: nothing is broken until the next tick comes, in an hour.
func TestTroubleOfAHoldEndsWithIt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1h", 10*time.Minute)
		job.Lease = D
		a := c.start("a", job)
		time.Sleep(time.Hour + 20*time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "renew" {
				return context.DeadlineExceeded
			}
			return apply()
		})
		time.Sleep(13 * time.Second)
		a.tap.meet(nil)
		time.Sleep(20 * time.Second) // no look, which would tell too, comes before
		if s := c.record("work").Status; s != store.Abandoned {
			t.Fatalf("the run is %s", s)
		}
		if h := a.Health(); h.Storage != nil || len(h.Broken) > 0 {
			t.Errorf("health tells %v %v", h.Storage, h.Broken)
		}
	})
}

// A machine that is suspended before a further try must not begin it when it
// goes on without its lease.
func TestNoFurtherTryWithoutTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var asleep atomic.Int64
		begin := time.Now()
		job := work("@every 1m", 0)
		job.Lease, job.MaxTries, job.Backoff = D, 2, 300*time.Millisecond
		job.Do = func(_ context.Context, run *soloist.Run) error {
			time.Sleep(10 * time.Millisecond) // until all that keeps the lease is at rest
			asleep.Add(int64(2 * D))
			return errors.New("failed")
		}
		a := c.replica("a", job)
		a.Elapsed = func() time.Duration { return time.Since(begin) + time.Duration(asleep.Load()) }
		c.launch(a)
		time.Sleep(time.Minute + 5*time.Second)
		if n := len(c.all()); n != 1 {
			t.Errorf("%d tries", n)
		}
	})
}
