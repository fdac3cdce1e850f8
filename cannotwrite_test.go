package soloist_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
		if n := len(ranBy(c, "b", time.Time{})); n < 6 {
			t.Errorf("b runs %d of 10 ticks", n)
		}
		if got := c.outcomes("work"); !slices.Contains(got, "abandoned 00:01:00 its runner died") {
			t.Errorf("got %q", got)
		}
	})
}

// An outage of writes that is shorter than the patience loses no outcome.
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
		if got, n := c.outcomes("work"), len(c.all()); n != 1 || !slices.Equal(got, []string{"succeeded 00:10:00"}) {
			t.Errorf("%d runs: %q", n, got)
		}
	})
}

// Health names the failing writes all the time, and blames no other client.
func TestHealthNamesWritesThatFail(t *testing.T) {
	for _, names := range []string{"a", "abc"} {
		for _, lease := range []time.Duration{D, time.Minute} {
			inCluster(t, func(c *cluster) {
				job := work("@every 5m", 0)
				job.Lease = lease
				for _, name := range names {
					c.start(string(name), job).tap.meet(noWrites)
				}
				a := c.started[0]
				time.Sleep(15 * time.Minute)
				for range 1800 {
					time.Sleep(time.Second)
					if why := a.Health().Broken["work"]; !errors.Is(why, errWrite) {
						t.Fatalf("%s, lease %s: health is %v", names, lease, why)
					}
				}
				if all, err := a.Status(c.t.Context()); err != nil || all[0].Occupied != nil {
					t.Errorf("status is %+v, %v", all, err)
				}
				if n := len(a.log.lines("level=ERROR")); n != 1 {
					t.Errorf("%d errors in the log", n)
				}
				for _, r := range c.started {
					r.tap.meet(nil)
				}
				time.Sleep(7 * time.Minute)
				if why := a.Health().Broken; len(c.all()) == 0 || len(names) == 1 && len(why) > 0 {
					t.Errorf("after it: %d runs, health is %v", len(c.all()), why)
				}
			})
		}
	}
}

// The writes of a replica fail after it has run ticks well: its log says so once,
// and does not say that all is well as long as they fail.
func TestNoAllClearWhileWritesFail(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1m", 0))
		time.Sleep(11*time.Minute + 3*time.Second)
		a.tap.meet(noWrites)
		time.Sleep(10 * time.Minute)
		if got := a.log.lines("looked after again"); len(got) > 0 {
			t.Errorf("%q", got)
		}
		if got := a.log.lines("level=ERROR"); len(got) != 1 {
			t.Errorf("got %q", got)
		}
	})
}

// A record with no room for a claim is named, and its lease is released.
func TestARecordWithNoRoomForAClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		now := time.Now().UTC().Format(time.RFC3339)
		record := fmt.Sprintf(`{"schema":1,"app":"soloist","job":"work","created":%[1]q,"since":%[1]q,"token":7,"writer":"w","watermark":%[1]q,"status":"idle","lease":15,"x":%[2]q}`, now, strings.Repeat("x", 7850))
		if _, err := c.store.Create(c.t.Context(), "soloist/work", []byte(record)); err != nil {
			t.Fatal(err)
		}
		a := c.start("a", work("@every 1m", 0))
		time.Sleep(5 * time.Minute)
		for range 1800 {
			time.Sleep(time.Second)
			if why := a.Health().Broken["work"]; why == nil || !strings.Contains(why.Error(), "shorten the record") {
				t.Fatalf("health is %v", why)
			}
		}
		if n := a.tap.counts(); n["acquire"] == 0 || n["acquire"] != n["release"] {
			t.Errorf("calls: %v", n)
		}
	})
}
