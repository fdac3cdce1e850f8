package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// backfill orders that some ticks are run again: before the present, also from before the job, or those
// that were missed. Some backfills are cancelled.
func (c *Cluster) backfill(d draw.PlannedFault) {
	r := draw.New(c.Seed, 0, draw.Backfills, d.Job, trace.TimeOfDay(d.At))
	def := c.drawnNow(d.Job)
	if def == nil {
		return
	}
	to := time.Now().Add(-r.Between(2*time.Minute, time.Hour))
	o := soloist.Order{Kind: store.OrderBackfill, Job: d.Job, By: trace.Orderer,
		Backfill: soloist.Backfill{From: to.Add(-time.Duration(1+r.Below(10)) * def.Every), To: to, All: r.Chance(0.7)}}
	if !o.Backfill.All {
		o.Backfill.From = to.Add(-r.Between(5*time.Minute, time.Hour))
	}
	o.Backfill.Parallel = c.parallel(d)
	at := c.desk(d.Job, r)
	if at == nil {
		return
	}
	never := func() bool { return false }
	if c.note(context.Background(), at, o, never) != nil || !r.Chance(0.3) || !c.idle(r.Between(0, 2*time.Minute)) {
		return
	}
	if at = c.desk(d.Job, r); at != nil {
		_ = c.note(context.Background(), at, soloist.Order{Kind: store.OrderCancelBackfill, Job: d.Job, By: trace.Orderer}, never)
	}
}

// parallel is how many ticks of a backfill are run at a time. Those of a group are run one at a time.
func (c *Cluster) parallel(d draw.PlannedFault) int {
	r := draw.New(c.Seed, 0, "parallel", d.Job, trace.TimeOfDay(d.At))
	if def := c.drawnNow(d.Job); def.Group != "" || r.Chance(0.4) {
		return 0
	}
	return 1 + r.Below(5)
}

// drawnNow returns the definition of a job in the version of now, nil if it has none.
func (c *Cluster) drawnNow(job string) *trace.Definition {
	c.version.Lock()
	defer c.version.Unlock()
	for i := range c.version.now {
		if d := c.version.now[i]; d.Name == job {
			return &d
		}
	}
	return nil
}
