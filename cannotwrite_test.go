package soloist_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

var errWrite = errors.New("502 from a proxy: header too large")

// noWrites fails writes alone: reads and leases go on.
func noWrites(op string, apply func() error) error {
	if op == "write" || op == "save" {
		return errWrite
	}
	return apply()
}

// The writes of one replica fail from the middle of a run on: it cannot record
// the outcome, and lets its lease expire, so that the others go on.
func TestAReplicaWhoseWritesFailLetsItsLeaseExpire(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 10*time.Second)
		a := c.start("a", job)
		time.Sleep(65 * time.Second)
		a.tap.meet(noWrites)
		c.start("b", job)
		time.Sleep(10 * time.Minute)
		if n := len(ranBy(c, "b", time.Time{})); n == 0 {
			t.Error("b runs nothing")
		}
		if got := c.fates("work"); !slices.Contains(got, "abandoned 00:01:00 its runner died") {
			t.Errorf("got %q", got)
		}
	})
}

// An outage of writes that lasts for two leases and a half loses no outcome.
func TestAShortOutageOfWritesLosesNoOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10m", 10*time.Second)
		job.Lease, job.Interrupted = time.Minute, soloist.Rerun
		a := c.start("a", job)
		time.Sleep(10*time.Minute + 5*time.Second)
		a.tap.meet(noWrites)
		c.start("b", job)
		time.Sleep(5*time.Second + 150*time.Second)
		a.tap.meet(nil)
		time.Sleep(time.Minute)
		if got, n := c.fates("work"), len(c.all()); n != 1 || !slices.Equal(got, []string{"succeeded 00:10:00"}) {
			t.Errorf("%d runs: %q", n, got)
		}
	})
}
