package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// backfill returns what is known of the last backfill of the job, from its record and the orders that this
// replica has read.
func (r *Runner) backfill(rec *store.Record) (b store.BackfillProgress) {
	b.Order = r.orders().Backfill
	b.Order.Spans = slices.Clone(b.Order.Spans) // the spans of a status are the caller's
	if b.Order.Seq == 0 || r.job.Policy.Ticks == nil {
		return store.BackfillProgress{}
	}
	if rec.Backfill.Seq == b.Order.Seq {
		b.Done = rec.Backfill
	}
	if rec.Run.Status == store.Running && store.BackfillOf(rec.Run.Request) == b.Order.Seq {
		b.Tick, b.Beside = underWay(rec)
	}
	b.Over = b.Tick.IsZero() && r.job.Policy.BackfillOver(rec, &b.Order)
	return b
}

// underWay returns the first tick of a run that has no outcome, zero if there is none, and how many others there are.
func underWay(rec *store.Record) (first time.Time, beside int) {
	if !plan.Several(rec) {
		return rec.Run.Tick, 0
	}
	all := plan.UnderWay(rec)
	if len(all) == 0 {
		return time.Time{}, 0
	}
	return all[0].Tick, len(all) - 1
}

// A Range is what a backfill is asked for.
type Range = plan.Range

// A BackfillPlan is a backfill that can be ordered, with its first and last tick.
type BackfillPlan struct {
	store.Backfill
	First, Last time.Time
}

// PlanBackfill reads the record and returns the backfill of a range of ticks. An error that is
// control.ErrRefused says why there can be none.
func (r *Runner) PlanBackfill(ctx context.Context, of Range) (BackfillPlan, error) {
	b := r.beside("")
	if err := b.readForOrder(ctx); err != nil {
		return BackfillPlan{}, err
	}
	rec := &b.view.rec
	before := r.orders().Backfill
	fill, first, last, err := r.job.Policy.PlanBackfill(rec, r.now(), of, &before)
	if err != nil {
		return BackfillPlan{}, control.Refuse(err)
	}
	if former := b.backfill(rec); former.Over {
		fill.Before = former.Order.Seq
	}
	return BackfillPlan{fill, first, last}, nil
}

// LastBackfill reads the record, and the orders if they are known to have none, and returns the backfill
// that can be cancelled.
func (r *Runner) LastBackfill(ctx context.Context) (last store.Backfill, err error) {
	b := r.beside("")
	if err := b.readForOrder(ctx); err != nil {
		return last, err
	}
	fill := b.backfill(&b.view.rec)
	none := func() bool { return fill.Order.Seq == 0 || fill.Over }
	if orders := r.replica.Orders; none() && orders.Read(ctx, orders.Now()) { // it may have been ordered elsewhere a moment ago
		fill = b.backfill(&b.view.rec)
	}
	if none() {
		return last, fmt.Errorf("%w: it has no backfill that is under way", ErrNotRunning)
	}
	return fill.Order, nil
}
