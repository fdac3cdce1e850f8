package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// backfills is what operators order of ticks that are over.
const backfills = "backfill"

// backfillPlan is which jobs of a seed have ticks run again, and when, in most of the seeds with orders.
func backfillPlan(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []plannedFault) {
	r := newRoll(seed, 0, backfills)
	if !r.chance(0.7) {
		return nil
	}
	for t := start.Add(r.around(2 * time.Minute)); t.Before(end); t = t.Add(r.around(3 * time.Minute)) {
		d := &jobs[r.below(len(jobs))]
		if d.Every > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			all = append(all, plannedFault{at: t, what: backfills, slot: r.below(slots), job: d.Name})
		}
	}
	return all
}

// backfill orders that some ticks are run again: before the present, also from before the job, or those
// that were missed. Some backfills are cancelled.
func (c *Cluster) backfill(d plannedFault) {
	r := newRoll(c.Seed, 0, backfills, d.job, trace.TimeOfDay(d.at))
	def := c.drawnNow(d.job)
	if def == nil {
		return
	}
	to := time.Now().Add(-r.between(2*time.Minute, time.Hour))
	o := soloist.Order{Kind: store.OrderBackfill, Job: d.job, By: trace.Orderer,
		Backfill: soloist.Backfill{From: to.Add(-time.Duration(1+r.below(10)) * def.Every), To: to, All: r.chance(0.7)}}
	if !o.Backfill.All {
		o.Backfill.From = to.Add(-r.between(5*time.Minute, time.Hour))
	}
	o.Backfill.Parallel = c.parallel(d)
	at := c.desk(d.job, r)
	if at == nil {
		return
	}
	never := func() bool { return false }
	if c.note(context.Background(), at, o, never) != nil || !r.chance(0.3) || !c.idle(r.between(0, 2*time.Minute)) {
		return
	}
	if at = c.desk(d.job, r); at != nil {
		_ = c.note(context.Background(), at, soloist.Order{Kind: store.OrderCancelBackfill, Job: d.job, By: trace.Orderer}, never)
	}
}

// parallel is how many ticks of a backfill are run at a time. Those of a group are run one at a time.
func (c *Cluster) parallel(d plannedFault) int {
	r := newRoll(c.Seed, 0, "parallel", d.job, trace.TimeOfDay(d.at))
	if def := c.drawnNow(d.job); def.Group != "" || r.chance(0.4) {
		return 0
	}
	return 1 + r.below(5)
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
