package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// orders returns what operators have ordered for the job, as far as this replica knows.
func (r *Runner) orders() store.JobControl { return r.replica.Orders.Job(r.job.Name) }

// Heed makes the loop look at its job now, and ends a run whose end was ordered. Any goroutine
// may call it.
func (r *Runner) Heed() {
	r.alarm.Hurry()
	r.source.state.get().hand.hurry()
	r.obey()
}

// obey ends the run that is under way here if an operator has ordered that. What was to be handed over and was given up
// for that is handed over: the next claim of the same was made in spite of the order.
func (r *Runner) obey() {
	n, orders := r.source.state.get(), r.orders()
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
	token, fill := rec.Token, store.BackfillOf(rec.Run.Request)
	if rec.Run.Request == "" || fill != 0 {
		a.Under.Barred = h.barred
	}
	h.source.state.set(func(n *snapshot) { n.run = claimed{token, plan.AboutLast(rec), fill, h.known, cancel} })
	h.obey() // the order may have come before the claim was known here
	replaced := h.replacing(rec, h.now, func() error { return h.cannotFollow(h.stop, h.call) }, cancel)
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

// ordersOfDead reads the orders again if the record shows a run whose runner is gone, or a claim
// that was given up: an operator may have cancelled it since, which decides what becomes of it.
// A read that fails is repeated until what is known is too old to start anything. It returns nil
// too if a stop or the loss of the lease comes first.
func (h *hold) ordersOfDead(stop context.Context) error {
	orders, again := h.replica.Orders, plan.MayBeCancelled(&h.view.rec)
	for again && !orders.Read(stop, orders.Now()) {
		if err := orders.Stale(); err != nil {
			return err
		}
		again = lease.WaitFor(stop, h.session.Context(), control.Again)
	}
	return nil
}

// ErrNotRunning says that there is no run to end.
var ErrNotRunning = errors.New("nothing runs")

// A Target is what an order is about: the last run, by its token and by what it is for.
type Target struct {
	Token  int64
	About  store.About
	Record store.Record // as it was read; zero: there is none
}

// Orderable returns what the order is about, or why the order is not possible now. A resume is
// about the runs that are over. A tick that waits for another attempt can be cancelled too, but not one of a backfill: other
// runs of the job come before it, so that the last claim need not be the one of that tick. A job of EveryReplica has no
// record. An order under a name that the record shows would never be run.
func (r *Runner) Orderable(ctx context.Context, kind store.OrderKind, name string) (Target, error) {
	if r.job.EveryReplica {
		return Target{}, nil
	}
	b := r.beside("")
	begins := kind == store.OrderPause || kind == store.OrderResume
	if err := b.readForOrder(ctx); errors.Is(err, fs.ErrNotExist) && begins {
		return Target{}, nil // the job may be paused before it is ever started
	} else if err != nil {
		return Target{}, err
	}
	rec := &b.view.rec
	last := Target{rec.Token, plan.AboutLast(rec), *rec}
	ends := kind == store.OrderCancel || kind == store.OrderStepDown
	switch {
	case name != "" && plan.Knows(rec, name):
		return Target{}, control.Refuse(fmt.Errorf("the name %q was used for a run of %s already: choose another name", name, r.job.Name))
	case kind == store.OrderResume:
		last.Token = plan.LastOver(rec)
	case kind == store.OrderCancel && plan.MayBeCancelled(rec):
	case ends && (!rec.MayRun() || !b.view.entry.State.Live()):
		if fill := b.backfill(rec); kind == store.OrderCancel && fill.Order.Seq != 0 && !fill.Over {
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
	if err := r.beside("").tellUnlocked(ctx); err != nil { // the runner itself may be busy
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
		if err = r.readOnly(ctx); err != nil || !r.view.rec.MayRun() {
			return err
		}
		if r.view.entry.State.Live() {
			return fmt.Errorf("%w: the next holder was first", store.ErrHeld)
		}
		by := store.Unlocked{By: r.replica.Name, At: r.now().Truncate(time.Millisecond).UTC()}
		if err = r.annotate(ctx, func(rec *store.Record) { rec.Run.Unlocked = by }); !errors.Is(err, store.ErrChanged) {
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
	undo := context.AfterFunc(stop, func() { hand.at.CompareAndSwap(0, int64(h.client.Clock.Elapsed())) })
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
	now := h.client.Clock.Elapsed()
	h.hand.at.CompareAndSwap(0, int64(now))
	return max(0, grace-(now-time.Duration(h.hand.at.Load())))
}

// StepDown hands over what this replica runs of the job, as a stop would. It returns
// once the lease is given up or ctx has ended. It returns false if this replica has no
// lease of the job.
func (r *Runner) StepDown(ctx context.Context) (held bool, err error) {
	hand := r.source.state.get().hand
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
