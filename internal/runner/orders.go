package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// orders returns what operators have ordered for the job, as far as this replica knows.
func (b *base) orders() record.JobControl { return b.replica.Orders.Job(b.job.Name) }

// Heed makes the loop look at its job now, and ends a run whose end was ordered. Any goroutine
// may call it.
func (r *Runner) Heed() {
	r.alarm.Hurry()
	r.source.state.get().hand.hurry()
	r.obey()
}

// obey ends the run that is under way here if an operator has ordered that. What was to be handed over and was given up
// for that is handed over: the next claim of the same was made in spite of the order.
func (b *base) obey() {
	n, orders := b.source.state.get(), b.orders()
	if by, over := plan.EndOfBackfill(n.run.backfill, &orders.Backfill); over && n.run.backfill != 0 {
		n.run.cancel(supervise.Cancelled(by))
	}
	switch end := orders.EndOf(n.run.token, n.run.about); {
	case end.Cancel:
		n.run.cancel(supervise.Cancelled(end))
	case end.Seq > n.run.known && n.hand != nil:
		n.hand.stop()
	}
}

// obeying lets operators, or a newer tick, end the run of an attempt until done is called, and keep it
// from beginning. A manual run begins also while its job is paused.
func (h *hold) obeying(a *supervise.Attempt) (done func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.Under.Cancelled = ctx
	rec := &h.view.rec
	token, fill := rec.Token, event.BackfillOf(rec.Run.Request)
	if rec.Run.Request == "" || fill != 0 {
		a.Under.Barred = h.barred
	}
	h.source.state.set(func(n *snapshot) { n.run = claimed{token, plan.AboutLast(rec), fill, h.known, cancel} })
	h.obey() // the order may have come before the claim was known here
	replaced := h.replacing(rec, h.clock.Best, func() error { return h.cannotFollow(h.stop, h.call) }, cancel)
	return func() {
		replaced()
		h.source.state.set(func(n *snapshot) {
			if n.run.token == token { // a manual run in parallel may have put its own there
				n.run = claimed{}
			}
		})
		cancel(nil)
	}
}

// errPaused keeps a run from beginning.
var errPaused = errors.New("the job is paused")

// barred returns why a run must not begin: the job was paused while the claim was written, or
// this replica cannot know whether it was.
func (h *hold) barred() error {
	if err := h.replica.Orders.Stale(); err != nil {
		return err
	}
	if h.ordered(&h.view.rec).IsPaused() {
		return errPaused
	}
	return nil
}

// ordersOfDead reads the orders again, for a record that shows a run whose runner is gone, or a claim
// that was given up: an operator may have cancelled it since, which decides what becomes of it.
// A read that fails is repeated until what is known is too old to start anything. It returns nil
// too if a stop or the loss of the lease comes first.
func (h *hold) ordersOfDead(stop context.Context) error {
	orders := h.replica.Orders
	for !orders.Read(stop, orders.Now()) {
		if err := orders.Stale(); err != nil {
			return err
		}
		if !lease.WaitFor(stop, h.held, control.Again) {
			break
		}
	}
	return nil
}

// ErrNotRunning says that there is no run to end.
var ErrNotRunning = errors.New("nothing runs")

// A Target is what an order is about: the last run, by its token and by what it is for.
type Target struct {
	Token  int64
	About  record.About
	Record record.Record // as it was read; zero: there is none
}

// Orderable returns what the order is about, or why the order is not possible now. A resume is
// about the runs that are over. A tick that waits for another attempt can be cancelled too, but not one of a backfill: other
// runs of the job come before it, so that the last claim need not be the one of that tick. A job of EveryReplica has no
// record. An order under a name that the record shows would never be run.
func (r *Runner) Orderable(ctx context.Context, kind record.OrderKind, name string) (Target, error) {
	if r.job.EveryReplica {
		return Target{}, nil
	}
	read, state, err := r.readForOrder(ctx)
	if errors.Is(err, fs.ErrNotExist) && (kind == record.OrderPause || kind == record.OrderResume) {
		return Target{}, nil // the job may be paused before it is ever started
	} else if err != nil {
		return Target{}, err
	}
	rec := &read
	last := Target{rec.Token, plan.AboutLast(rec), read}
	ends := kind == record.OrderCancel || kind == record.OrderStepDown
	switch {
	case name != "" && plan.Knows(rec, name):
		return Target{}, control.Refuse(fmt.Errorf("the name %q was used for a run of %s already: choose another name", name, r.job.Name))
	case kind == record.OrderResume:
		last.Token = plan.LastOver(rec)
	case kind == record.OrderCancel && plan.MayBeCancelled(rec):
	case ends && (!rec.MayRun() || !state.Live()):
		if fill := inquire(r).backfill(rec); kind == record.OrderCancel && fill.Order.Seq != 0 && !fill.Over {
			return Target{}, fmt.Errorf("%w: its last run is over, and its backfill goes on: cancel the backfill", ErrNotRunning)
		}
		return Target{}, fmt.Errorf("%w: its last run is over", ErrNotRunning)
	}
	return last, nil
}

// ErrUntold is what Unlock returns if it has ended the lease and could not write that
// into the record. Then the next holder still waits, but the history cannot say who
// unlocked the job.
var ErrUntold = errors.New("the lease is ended, but the record does not say so")

// unlockTries allows for a last write of the old holder in between.
const unlockTries = 3

// Unlock ends the lease of the job, whichever replica holds it: now, or when it would have
// expired without a renewal. Only the first cuts a run short that may still trust its
// lease, so only the first is written into the record.
func (r *Runner) Unlock(ctx context.Context, now bool) error {
	breaker, ok := r.client.Store.(store.LeaseBreaker)
	switch {
	case r.job.EveryReplica:
		return fmt.Errorf("%s runs on each replica: it has no lease", r.job.Name)
	case !ok:
		return errors.New("the store cannot end a lease: it does not implement store.LeaseBreaker")
	case !now:
		return breaker.Break(ctx, r.client.Name, -1)
	}
	if err := breaker.Break(ctx, r.client.Name, 0); err != nil {
		return err
	}
	if err := r.beside("an unlock").tellUnlocked(ctx); err != nil { // the runner itself may be busy
		return fmt.Errorf("%w: %w", ErrUntold, err)
	}
	return nil
}

// tellUnlocked writes into the record who has ended the lease, unless the run is over or
// settled. It changes neither the status nor the token: the next holder has to see a run
// that may still go on, so that it waits as after any lease that did not expire by itself.
func (r *Runner) tellUnlocked(ctx context.Context) error {
	var err error
	for range unlockTries {
		var entry store.Entry
		var rec record.Record
		if entry, rec, err = r.readOnly(ctx); err != nil || !rec.MayRun() {
			return err
		}
		r.keep(&entry, rec)
		if entry.State.Live() {
			return fmt.Errorf("%w: the next holder was first", store.ErrHeld)
		}
		by := record.Unlocked{By: r.replica.Name, At: r.clock.Best().Truncate(time.Millisecond).UTC()}
		if err = r.annotate(ctx, func(rec *record.Record) { rec.Run.Unlocked = by }); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return err
}

// A handover lets StepDown end what runs here under a lease, and wait for that.
type handover struct {
	stop  func()
	over  chan struct{} // closed when the lease is given up
	heed  chan struct{} // has room for one: an order has come, or is over
	at    atomic.Int64  // elapsed time when the stop came, in nanoseconds; zero: it has not
	ended bool          // the lease is given up; guarded by the state
}

// stoppable makes the context that ends when the replica stops or when StepDown is
// called. The caller must call done when it has given up the lease: StepDown waits for
// that.
func (h *hold) stoppable() (done func()) {
	stop, cancel := context.WithCancel(h.ctx)
	hand := &handover{stop: cancel, over: make(chan struct{}), heed: make(chan struct{}, 1)}
	undo := context.AfterFunc(stop, func() { hand.at.CompareAndSwap(0, int64(h.clock.Elapsed())) })
	h.stop, h.hand = stop, hand
	var before *handover // of the loop, if this is a manual run in parallel
	h.source.state.set(func(n *snapshot) { before, n.hand = n.hand, hand })
	return func() {
		h.source.state.set(func(n *snapshot) {
			hand.ended = true
			if n.hand != hand { // a manual run in parallel has put its own there
				return
			}
			if n.hand = before; before != nil && before.ended {
				n.hand = nil
			}
		})
		undo() // this end is no stop
		cancel()
		close(hand.over)
	}
}

// graceLeft returns for how long a run may go on if the replica is to stop. A run that begins
// after the stop has what is left of the grace.
func (h *hold) graceLeft() time.Duration {
	grace := h.grace()
	if h.stop.Err() == nil {
		return grace
	}
	now := h.clock.Elapsed()
	h.hand.at.CompareAndSwap(0, int64(now))
	return max(0, grace-(now-time.Duration(h.hand.at.Load())))
}

// StepDown hands over what this replica runs of the job, as a stop would. It returns
// once the lease is given up or ctx has ended. It returns false if this replica has no
// lease of the job.
func (b *base) StepDown(ctx context.Context) (held bool, err error) {
	hand := b.source.state.get().hand
	if hand == nil {
		return false, nil
	}
	hand.stop()
	select {
	case <-hand.over:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// hurry lets what waits under the lease look at the orders. It may be called on nil.
func (h *handover) hurry() {
	if h == nil {
		return
	}
	select {
	case h.heed <- struct{}{}:
	default: // it is about to look
	}
}

// replacing ends the run of rec once a newer tick is due that takes its place, and that can start: why
// returns what keeps it from that. Both replica and tick are known here, so this asks no store.
func (b *base) replacing(rec *record.Record, now func() time.Time, why func() error, end context.CancelCauseFunc) (done func()) {
	p := &b.job.Policy
	if p.Overlap != plan.Replace || rec.Run.Request != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	of := rec.Clone() // the runner goes on with its own
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			v := plan.View{Record: &of, Now: now(), Control: b.orders()}
			wait := plan.UntilReplaced(p.Ticks, v.Now)
			if tick := p.ReplacedBy(v); !tick.IsZero() {
				if why() == nil {
					end(supervise.Replaced(tick))
					return
				}
				wait = min(wait, control.Again)
			}
			lease.Sleep(ctx, wait)
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// cannotFollow returns why a tick that is due under the run of a call would not start after it.
func (b *base) cannotFollow(stop context.Context, c *call) error {
	if stop.Err() != nil {
		return context.Cause(stop)
	}
	if runsWaiting := c.claims == plan.NoBackfill && len(c.ran) == 0; c.bounded && !runsWaiting {
		return errLeft
	}
	if err := b.replica.Degraded(); err != nil {
		return err
	}
	if err := c.fits(stop, b.job.Task.Timeout); err != nil || b.job.EveryReplica {
		return err
	}
	return b.replica.Orders.Stale()
}

// errLeft keeps a tick from taking the place of a run.
var errLeft = errors.New("the tick is left to the next call")

// A BackfillPlan is a backfill that can be ordered, with its first and last tick.
type BackfillPlan struct {
	record.Backfill
	First, Last time.Time
	Listed      []time.Time // the first ticks, up to maxListed
}

// maxListed is how many ticks of a plan people can look through.
const maxListed = 100

// A Range is what a backfill is asked for.
type Range = plan.Range

// PlanBackfill reads the record, and the orders if they are not known, and returns the backfill of a range of ticks. An error
// that is control.ErrRefused says why there can be none. The last backfill, which is in the orders, may have made up for ticks.
func (r *Runner) PlanBackfill(ctx context.Context, of Range) (BackfillPlan, error) {
	if err := r.replica.Orders.Refresh(ctx); err != nil {
		return BackfillPlan{}, err
	}
	rec, _, err := r.readForOrder(ctx)
	if err != nil {
		return BackfillPlan{}, err
	}
	q := inquire(r)
	fill, first, last, err := plan.PlanBackfill(&q.job.Policy, &rec, q.at, of, &q.orders.Backfill)
	if err != nil {
		return BackfillPlan{}, control.Refuse(err)
	}
	if former := q.backfill(&rec); former.Over {
		fill.Before = former.Order.Seq
	}
	return BackfillPlan{fill, first, last, plan.FirstTicks(q.job.Policy.Ticks, fill.Spans, maxListed)}, nil
}

// LastBackfill reads the record, and the orders if they are known to have none, and returns the backfill
// that can be cancelled.
func (r *Runner) LastBackfill(ctx context.Context) (last record.Backfill, err error) {
	rec, _, err := r.readForOrder(ctx)
	if err != nil {
		return last, err
	}
	fill := inquire(r).backfill(&rec)
	none := func() bool { return fill.Order.Seq == 0 || fill.Over }
	if orders := r.replica.Orders; none() && orders.Read(ctx, orders.Now()) { // it may have been ordered elsewhere a moment ago
		fill = inquire(r).backfill(&rec)
	}
	if none() {
		return last, fmt.Errorf("%w: it has no backfill that is under way", ErrNotRunning)
	}
	return fill.Order, nil
}

// readOnly reads the entry and never creates it. It is for operators: Unlock must work on a record that this
// program would not act upon.
func (b *base) readOnly(ctx context.Context) (store.Entry, record.Record, error) {
	entry, err := b.client.Read(ctx)
	if err != nil {
		return entry, record.Record{}, err
	}
	rec, err := record.Decode(entry.Record, b.replica.App, b.job.Name)
	if err != nil {
		return entry, rec, &recordError{err}
	}
	return entry, rec, nil
}

// readForOrder is readOnly for an operator who waits for the answer. The time-out of a call is made
// for replicas, which soon read again: a call that gets no answer is repeated, as the next connection
// may be a better one.
func (b *base) readForOrder(ctx context.Context) (rec record.Record, lease store.LeaseState, err error) {
	for range orderReads {
		var entry store.Entry
		entry, rec, err = b.readOnly(ctx)
		lease = entry.State
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return rec, lease, err
}

// orderReads is how often the record is read for an order before it is given up.
const orderReads = 3
