package soloist_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Somebody changes the record by hand, after a write whose answer is lost, and
// leaves the writer's nonce in it: it is not taken for that write.
func TestARecordChangedByHandAfterALostAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 10s", time.Second))
		time.Sleep(time.Minute + 500*time.Millisecond)
		changed := false
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op != "write" || changed || c.record("work").Status != store.Succeeded {
				return err
			}
			changed = true
			c.changeByHand(func(r *store.Record) { r.Watermark = r.Watermark.Add(48 * time.Hour) })
			return errNetwork
		})
		time.Sleep(10 * time.Minute)
		r := c.record("work")
		a.stop()
		if !changed || !r.Watermark.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("changed %t, and the record now says %s", changed, r.Watermark)
		}
		if a.Health().Broken["work"] == nil {
			t.Error("nobody is told")
		}
	})
}

// changeByHand rewrites the record of the job "work", whoever holds its lease.
func (c *cluster) changeByHand(change func(*store.Record)) {
	ctx := context.Background()
	_ = c.store.Break(ctx, "soloist/work", 0)
	r := c.record("work")
	change(&r)
	b, err := json.Marshal(r)
	if err != nil {
		c.t.Fatal(err)
	}
	e, err := c.store.Read(ctx, "soloist/work")
	if err != nil {
		c.t.Fatal(err)
	}
	l := c.store.Lease("soloist/work", "7c0a1c1e-0000-4000-8000-000000000001")
	if _, err := l.Acquire(ctx, D, e.ETag); err != nil {
		c.t.Fatal(err)
	}
	if _, err := l.Write(ctx, e.ETag, b); err != nil {
		c.t.Fatal(err)
	}
	if err := l.Release(ctx); err != nil {
		c.t.Fatal(err)
	}
}
