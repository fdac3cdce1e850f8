package draw

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Backfills is what operators order of ticks that are over.
const Backfills = "backfill"

// BackfillPlan is which jobs of a seed have ticks run again, and when, in most of the seeds with orders.
func BackfillPlan(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []PlannedFault) {
	r := New(seed, 0, Backfills)
	if !r.Chance(0.7) {
		return nil
	}
	for t := start.Add(r.Around(2 * time.Minute)); t.Before(end); t = t.Add(r.Around(3 * time.Minute)) {
		d := &jobs[r.Below(len(jobs))]
		if d.Every > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			all = append(all, PlannedFault{At: t, What: Backfills, Slot: r.Below(slots), Job: d.Name})
		}
	}
	return all
}

// Orders is what operators order for a job.
const Orders = "order"

// OrderPlan is what the operators of a seed order, and when.
func OrderPlan(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []PlannedFault) {
	r := New(seed, 0, "orders")
	for t := start.Add(r.Around(2 * time.Minute)); t.Before(end); t = t.Add(r.Around(3 * time.Minute)) {
		all = append(all, PlannedFault{At: t, What: Orders, Slot: r.Below(slots), Job: jobs[r.Below(len(jobs))].Name})
	}
	return all
}
