package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/reads"
	"github.com/soloist-go/soloist/store"
)

// A Status is what the store says about one job; the root explains the fields.
type Status struct {
	Name         string
	Shard        int
	Shards       int
	Singleton    bool
	EveryReplica bool
	Schedule     string
	Lease        store.LeaseState
	Record       store.Record
	Checkpoint   int64
	Next         time.Time
	Foreign      bool
	Waits        time.Time
	Paused       bool
	Err          error
	Occupied     error
	After        string
	Late         store.Late
	Awaits       string
	Begins       time.Time
	Over         time.Time
	Backfill     store.BackfillProgress
}

// Statuses returns the statuses of the runners, which are all of one replica. It changes
// neither the entries nor the views of the runners, so that any goroutine may call it.
func Statuses(ctx context.Context, runners []*Runner) []Status {
	all, known := make([]Status, len(runners)), listAll(ctx, runners)
	var wait sync.WaitGroup
	for i, r := range runners {
		wait.Go(func() { all[i] = r.status(ctx, &known) })
	}
	wait.Wait()
	addAwaited(runners, all)
	return all
}

// addAwaited adds to the statuses of followers what their next tick waits for.
func addAwaited(runners []*Runner, all []Status) {
	records := make(map[string]*store.Record, len(all))
	for i := range all {
		if st := &all[i]; st.Err == nil {
			records[st.Name] = &st.Record
		}
	}
	for i, r := range runners {
		if st := &all[i]; r.job.Policy.Follows() {
			st.After = strings.Join(r.job.Policy.After, ", ")
			if st.Err == nil && st.Lease != "" && !st.Foreign {
				st.Awaits = strings.Join(r.awaited(&st.Record, st.Lease, records), ", ")
			}
		}
	}
}

// listAll lists the entries of the runners, if that is cheaper than to read each.
func listAll(ctx context.Context, runners []*Runner) reads.Listing {
	var clients []*lease.Client
	for _, r := range runners {
		if !r.job.EveryReplica {
			clients = append(clients, r.client)
		}
	}
	return reads.List(ctx, runners[0].replica.App, clients)
}

// status reads the entry once, unless it is listed.
func (r *Runner) status(ctx context.Context, known *reads.Listing) Status {
	if r.job.EveryReplica {
		p, now := &r.job.Policy, r.replica.Wall()
		return Status{Name: r.job.Name, Schedule: r.job.Schedule(), EveryReplica: true, Next: p.Ticks.Next(now), Paused: r.pausedBy(&store.Record{}),
			Begins: p.Begins(now), Over: p.Over(&store.Record{Watermark: now}, now)}
	}
	st := r.statusOf(known.Entry(ctx, r.client))
	st.Paused = st.Err == nil && r.pausedBy(&st.Record)
	st.Backfill = r.backfill(&st.Record)
	// Ticks of a pause do not count as due: a caller that waits for the next one would not wait.
	if p := &r.job.Policy; st.Paused && !p.Paused && !st.Foreign && p.Ticks != nil && st.Next.Before(r.now()) {
		st.Next = p.Ticks.Next(r.now())
	}
	return st
}

// pausedBy reports whether ticks are skipped, by the settings of this replica, by the record,
// or by the orders that this replica has read.
func (r *Runner) pausedBy(rec *store.Record) bool {
	p := &r.job.Policy
	return p.Paused || plan.View{Now: r.now(), Record: rec, Control: r.orders()}.IsPaused()
}

// statusOf returns what an answer to a read of the entry says.
func (r *Runner) statusOf(entry store.Entry, err error) Status {
	p := &r.job.Policy
	st := Status{Name: r.job.Name, Shard: r.job.Shard.Index, Shards: r.job.Shard.Count, Singleton: r.Singleton()}
	if !st.Singleton {
		st.Schedule = r.job.Schedule()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is made when a scheduler starts
		now := r.now()
		none := &store.Record{Watermark: now}
		st.Next, st.Begins, st.Over = p.NextTick(none), p.Begins(now), p.Over(none, now)
		return st
	case err != nil:
		st.Err = err
		return st
	}
	// The store can be read, whatever the record says.
	r.readable()
	st.Lease, st.Checkpoint = entry.State, entry.Checkpoint
	if r.shown.Load() == nil {
		r.shown.CompareAndSwap(nil, &decoded{}) // it is as large as all else that a job keeps
	}
	if st.Record, st.Err = r.shown.Load().record(&entry, r.replica.App, r.job.Name); st.Err == nil {
		st.Err = plan.Unusable(&st.Record, boundsOf(r.client))
		now := r.now()
		st.Next, st.Waits = p.NextTick(&st.Record), p.Waits(&st.Record, now)
		st.Begins, st.Over = p.Begins(now), p.Over(&st.Record, now)
	}
	if rec := &st.Record; st.Err == nil && rec.Definition.Spec != "" && rec.Definition.Spec != p.Spec {
		st.Foreign, st.Next, st.Begins, st.Over = true, plan.Due(rec), time.Time{}, time.Time{}
	}
	if st.Err == nil {
		st.Late = p.LateNow(&st.Record, r.now(), r.orders())
		st.Occupied = r.occupiedStatus(&st)
	}
	return st
}

// occupiedStatus returns that a client which claims nothing holds the lease. This replica
// may have watched it; a process that has only just started judges by how long a tick
// has been due.
func (r *Runner) occupiedStatus(st *Status) error {
	if !st.Lease.Live() || st.Record.MayRun() {
		return nil
	}
	seen := r.source.state.get().broken
	if err, ok := errors.AsType[*occupiedError](seen); ok {
		return err
	}
	if _, denied := errors.AsType[*deniedError](seen); denied { // the lease may be this replica's own
		return nil
	}
	if late := r.now().Sub(st.Next); !st.Next.IsZero() && late > r.job.Policy.OccupiedAfter(&st.Record) {
		return fmt.Errorf("leased by a client that has claimed nothing in the %s since a tick came due: if that goes on, `unlock %s` frees it", late.Round(time.Second), r.job.Name)
	}
	return nil
}

// A decoded is the record that the last status of a job has shown. A page that reads the
// statuses of many jobs every few seconds decodes only those that have changed.
type decoded struct {
	mu   sync.Mutex
	etag string // of rec; empty: nothing is kept
	rec  store.Record
}

// record returns the record of an entry, which shares its history with earlier answers and nothing that can be written
// in place.
func (d *decoded) record(e *store.Entry, app, job string) (store.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.ETag == "" || e.ETag != d.etag {
		rec, err := store.DecodeRecord(e.Record, app, job)
		if err != nil {
			return rec, err
		}
		d.etag, d.rec = e.ETag, rec
	}
	rec := d.rec.Clone()
	rec.Counts = maps.Clone(rec.Counts) // what a caller writes there is its own
	rec.Backfill.Counts, rec.Backfill.Open = maps.Clone(rec.Backfill.Counts), slices.Clone(rec.Backfill.Open)
	return rec, nil
}

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

// PlanBackfill reads the record, and the orders if they are not known, and returns the backfill of a range of ticks. An error
// that is control.ErrRefused says why there can be none. The last backfill, which is in the orders, may have made up for ticks.
func (r *Runner) PlanBackfill(ctx context.Context, of Range) (BackfillPlan, error) {
	b := r.beside("")
	err := r.replica.Orders.Refresh(ctx)
	if err == nil {
		err = b.readForOrder(ctx)
	}
	if err != nil {
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
