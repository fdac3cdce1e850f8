package soloist

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/runner"
)

// An Order is what an operator wants done, on whichever replicas are up.
type Order struct {
	Kind OrderKind // what to do
	Job  string    // the name of a job or singleton, or of one shard

	// By says who orders. Empty: the name of this Replica.
	By string

	// Reason is kept with the order, and shown.
	Reason string

	// Until ends a pause, or is when a run that has not started is given up. Zero: a pause has no
	// end, and a run is given up after an hour.
	Until time.Time

	// Request names a run; see [Scheduler.RunNow]. A name that was used is refused. Empty: a new
	// name. The runs of a backfill have the name that its order gets when it is written.
	Request string

	// Backfill says which ticks a backfill has.
	Backfill Backfill

	// These are set in an order that was written. Set by a caller, they have no effect.
	Seq   int64     // its number, which only grows; of a backfill: Run.Backfill of its runs
	At    time.Time // by the store's clock
	Token int64     // of the run that OrderCancel or OrderStepDown ends; else zero
	Ticks int       // how many its backfill has
}

// OrderKind is what an operator can order.
type OrderKind string

const (
	// OrderPause ends all starts of the job except manual runs. It binds every replica eight seconds
	// after Order has returned, at the latest. A run that is under way goes on. Ticks that come due
	// are skipped.
	OrderPause OrderKind = OrderKind(record.OrderPause)

	// OrderResume ends a pause, also one by [Retry.PauseAfter].
	OrderResume OrderKind = OrderKind(record.OrderResume)

	// OrderRun asks for one run, in addition to the ticks, on whichever replica is first. It waits for
	// the end of a run that was under way before it, and is skipped if it was ordered during that run,
	// unless Late.Missed is RunAll.
	OrderRun OrderKind = OrderKind(record.OrderRun)

	// OrderCancel ends the context of the run that is under way with [ErrCancelled]. Its tick is not
	// run again. A tick that waits for another attempt is cancelled too, but one of a backfill only
	// with the backfill.
	OrderCancel OrderKind = OrderKind(record.OrderCancel)

	// OrderStepDown hands over the run that is under way, as a stop of its replica does.
	OrderStepDown OrderKind = OrderKind(record.OrderStepDown)

	// OrderBackfill has the ticks of Order.Backfill run again, in their order; see
	// [Scheduler.PlanBackfill]. A job has one backfill at a time.
	OrderBackfill OrderKind = OrderKind(record.OrderBackfill)

	// OrderCancelBackfill has no further tick of the backfill run. The context of its run that is
	// under way ends with [ErrCancelled].
	OrderCancelBackfill OrderKind = OrderKind(record.OrderCancelBackfill)
)

// Order writes an order into the store, where replicas read it within five seconds; none has to
// be up. It returns the order as it was written, with its number, its time and the name of its
// request. An error may leave open whether the order was written; then it says so.
// [ErrNotRunning]: there is no run to end. [ErrRefused]: the order is not possible.
// fs.ErrNotExist: a run is to be started or ended, and the job has no entry, since no scheduler has
// ever started it; a pause needs none.
func (s *Scheduler) Order(ctx context.Context, o Order) (Order, error) {
	if err := s.Validate(); err != nil {
		return Order{}, err
	}
	written, err := s.core.Order(ctx, desk.Order{Kind: record.OrderKind(o.Kind), Job: o.Job, By: o.By, Reason: o.Reason, Until: o.Until,
		Request: o.Request, Backfill: desk.Range(o.Backfill)})
	return newOrder(&written), err
}

// Orders returns the last 100 orders, newest first. It reads the store.
func (s *Scheduler) Orders(ctx context.Context) ([]Order, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	control, err := s.core.Control(ctx)
	all := make([]Order, len(control.Audit))
	for i := range all {
		all[i] = newOrder(&control.Audit[i])
	}
	return all, err
}

func newOrder(o *record.Order) Order {
	order := Order{Kind: OrderKind(o.Kind), Job: o.Job, By: o.By, Reason: o.Reason, Until: o.Until, Request: o.Name, Backfill: rangeOf(&o.Backfill),
		Seq: o.Seq, At: o.At, Ticks: o.Backfill.Ticks}
	if o.Kind == record.OrderCancel || o.Kind == record.OrderStepDown {
		order.Token = o.Token
	}
	return order
}

func rangeOf(b *record.Backfill) Backfill { return Backfill{b.From, b.To, b.All, b.Parallel} }

// RunNow runs a job once, in addition to its ticks, on this replica. It returns when the run is
// over, or when ctx, and after it Grace, has ended the run. The run is claimed as a tick is, so
// only one replica runs the job at a time. Ticks that come due under the run are skipped, unless
// a tick was due before the run began: then Late.Missed says what becomes of that tick and of those
// that came due under the run. If another schedule is in force, it stays in force, and its
// replicas decide about all its ticks.
//
// The request is the name of this run: up to 64 letters, digits, dots, colons, hyphens and
// underscores. A name that reads as a tick in [Run.ID] is refused. A request that the record
// still knows is not run again: RunNow returns its outcome. A request that was ordered, and is
// among the orders in force, is not run again either: RunNow returns an error if its outcome has
// left the record. If the orders cannot be read, it waits, as for the record. A job whose Timeout is longer than
// what the deadline of ctx leaves is not started. [ErrHeld]: another replica runs the job or has its lease, its group
// has no free slot, or its tick has to be run again first. If ctx ends before the run has begun, the request stays
// unknown and may be made again. If the run was over and its outcome could not be written, the
// error says whether it was refused, as another replica had settled the run, or not confirmed,
// as the store did not answer.
func (s *Scheduler) RunNow(ctx context.Context, job, request string) (event.Outcome, error) {
	r, err := s.runner(job)
	switch {
	case err != nil:
		return event.Outcome{}, err
	case r.Singleton():
		return event.Outcome{}, fmt.Errorf("%s is a singleton: it is not run by hand", job)
	}
	if err := desk.CheckRequest(request); err != nil {
		return event.Outcome{}, err
	}
	defer s.core.told.flush()
	defer s.core.Replica.Orders.Use()()
	return runner.RunNow(ctx, r, request)
}

// StepDown hands over what this replica runs of a job or singleton, as a stop of the replica
// would: the record announces it, other replicas read more often, the run's context ends with
// [ErrStopped], and another replica may acquire the lease. It returns once the run is over or ctx
// has ended; a run that calls it waits for itself. This replica then leaves the job alone for a
// third of its lease and a second. An error: there is no such job, or this replica holds no lease
// of it.
func (s *Scheduler) StepDown(ctx context.Context, job string) error {
	r, err := s.runner(job)
	if err != nil {
		return err
	}
	held, err := r.StepDown(ctx)
	if !held {
		return fmt.Errorf("%s holds no lease on this replica", job)
	}
	return err
}

// Unlock ends the lease of a job or singleton, whichever replica holds it: when it would have
// expired or, if now is set, at once, while its holder may still work. The next holder waits for
// the length of the lease before it claims, since the last one may trust its lease until then.
// With now, the record names this Replica as the unlocker. [ErrLost]: there is no
// lease. [ErrUntold]: the lease is ended, and the record does not say so. fs.ErrNotExist: the job
// has no entry.
func (s *Scheduler) Unlock(ctx context.Context, job string, now bool) error {
	r, err := s.runner(job)
	if err != nil {
		return err
	}
	return r.Unlock(ctx, now)
}

// A Backfill says which ticks of a job are to be run again. They have their outcome already: they were
// missed, or their runs have to be repeated, or they are older than the job.
type Backfill struct {
	// The range, with both ends; it ends before the first tick without an outcome. No To: it ends
	// now, or with the last tick that has its outcome.
	From, To time.Time

	// All takes all ticks of the range. Otherwise those that were missed, as far as the history of the
	// record shows; a range that begins before its history is refused.
	All bool

	// Parallel is how many ticks are run at a time, from 1 to 16. Zero is 1. They are claimed
	// together and run in parallel on one replica, under one lease and with one token, and the next
	// ones are claimed when all of them have returned; so a tick of the job that is due waits for
	// the longest of them. Their runs share no checkpoint: Save and Load return an error. A job of
	// a group runs one at a time.
	Parallel int
}

// A BackfillPlan is what a backfill would do.
type BackfillPlan struct {
	Ticks       int // up to 100,000
	First, Last time.Time
}

// PlanBackfill returns which ticks a backfill would run, and changes nothing. It reads the record
// and the orders.
//
// An [Order] of OrderBackfill has them run, on whichever replicas are up, in their order one at a
// time or Parallel at a time. A tick that is due, and a manual run that was ordered, come first. Each tick has one outcome,
// also if replicas die in between: where the runner of a tick died, Interrupted says what becomes of it. The
// outcomes are in events and logs and are counted in [JobStatus], and not in the history of the record. They move
// no watermark, and neither Late.Start nor Retry.PauseAfter applies. While the job is paused the backfill waits.
//
// [ErrRefused]: the range is wrong, has no such ticks or too many. fs.ErrNotExist: the job has no entry.
func (s *Scheduler) PlanBackfill(ctx context.Context, job string, b Backfill) (BackfillPlan, error) {
	if err := s.Validate(); err != nil {
		return BackfillPlan{}, err
	}
	plan, err := s.core.PlanBackfill(ctx, job, desk.Range(b))
	if err != nil {
		return BackfillPlan{}, err
	}
	return BackfillPlan{plan.Ticks, plan.First, plan.Last}, nil
}
