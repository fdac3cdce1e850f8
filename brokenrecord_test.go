package soloist_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// byOthers makes the entry of "work" as another program or a person may: like one
// that is idle and owes the ticks of the last minute, except for fields.
func (c *cluster) byOthers(fields map[string]any) {
	c.t.Helper()
	now := time.Now().UTC()
	record := map[string]any{"schema": 1, "app": "soloist", "job": "work", "created": now.Add(-time.Hour), "spec": "", "since": now.Add(-time.Hour),
		"token": 7, "writer": "w", "watermark": now.Add(-time.Minute), "status": "idle", "lease": 15}
	maps.Copy(record, fields)
	b, err := json.Marshal(record)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.store.Create(c.t.Context(), "soloist/work", b); err != nil {
		c.t.Fatal(err)
	}
}

// specOf returns what a record says of a job's definition.
func specOf(t *testing.T, job soloist.Job) (spec string) {
	t.Helper()
	inCluster(t, func(c *cluster) {
		c.start("a", job)
		time.Sleep(time.Second)
		spec = c.record("work").Spec
	})
	return spec
}

// A record tells of a run under way whose tick is settled, or that has no tick:
// Rerun starts no tick again that the watermark has passed.
func TestASettledTickIsNotRunAgain(t *testing.T) {
	job := work("@every 1m", time.Second)
	job.Interrupted = soloist.Rerun
	spec := specOf(t, job)
	for name, tick := range map[string]time.Duration{"settled": -10 * time.Minute, "the watermark": -time.Minute, "none": 0} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				now := time.Now().UTC()
				fields := map[string]any{"spec": spec, "status": "running", "claimed": now.Add(-time.Minute), "attempt": 1, "replica": "gone"}
				if tick != 0 {
					fields["tick"] = now.Add(tick)
				}
				c.byOthers(fields)
				c.start("a", job)
				time.Sleep(5 * time.Minute)
				runs := c.all()
				if len(runs) < 5 {
					t.Fatalf("%d runs", len(runs))
				}
				if r := runs[0]; !r.Tick.After(now.Add(-time.Minute)) || r.Attempt != 1 {
					t.Errorf("started %s, attempt %d, and the watermark was %s", r.ID(), r.Attempt, now.Add(-time.Minute))
				}
			})
		})
	}
}

// After the largest attempt that a record can tell of, the tick is given up: a
// further one would make the record unreadable.
func TestNoAttemptAfterTheLargest(t *testing.T) {
	job := work("@every 1m", 5*time.Second)
	job.Interrupted = soloist.Rerun
	spec := specOf(t, job)
	for _, status := range []store.Status{store.Running, store.Abandoned} {
		inCluster(t, func(c *cluster) {
			now := time.Now().UTC()
			c.byOthers(map[string]any{"spec": spec, "status": status, "tick": now, "claimed": now, "attempt": 1<<31 - 1, "replica": "gone"})
			a := c.start("a", job)
			for len(c.all()) == 0 {
				time.Sleep(time.Second)
			}
			if r := c.all()[0]; r.Attempt != 1 || !r.Tick.After(now) {
				t.Errorf("%s: %s has attempt %d", status, r.ID(), r.Attempt)
			}
			a.kill()
			b := c.start("b", job)
			time.Sleep(10 * time.Minute)
			if err := b.Health().Broken["work"]; err != nil {
				t.Errorf("%s: %v", status, err)
			}
		})
	}
}
