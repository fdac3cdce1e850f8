package soloist

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// An Order is what an operator wants done, on whichever replicas are up.
type Order struct {
	// Kind is what to do.
	//
	//   - store.OrderPause: nothing of the job starts any more except manual runs. It binds every
	//     replica eight seconds after Order has returned, at the latest. A run that is under way
	//     goes on. Ticks that come due are skipped.
	//   - store.OrderResume: the end of a pause, also of one by [Retry.PauseAfter].
	//   - store.OrderRun: one run, in addition to the ticks, on whichever replica is first. It waits for
	//     the end of a run that was under way before it, and is skipped if it was ordered during
	//     that run, unless Missed is RunAll.
	//   - store.OrderCancel: the context of the run that is under way ends with [ErrCancelled].
	//     Its tick is not run again. A tick that waits for another attempt is cancelled too.
	//   - store.OrderBackfill: the ticks of Backfill are run again, in their order; see
	//     [Scheduler.PlanBackfill]. A job has one backfill at a time.
	//   - store.OrderCancelBackfill: no further tick of the backfill is run. The context of its run that
	//     is under way ends with [ErrCancelled].
	//   - store.OrderStepDown: the run that is under way is handed over, as at a stop of its
	//     replica.
	Kind store.OrderKind

	Job string

	// By says who orders. Empty: the name of this Replica.
	By string

	// Reason is kept with the order, and shown.
	Reason string

	// Until ends a pause, or is when a run that has not started is given up. Zero: a pause has no
	// end, and a run is given up after an hour.
	Until time.Time

	// Request names a run; see [Scheduler.RunNow]. Empty: a new name.
	Request string

	// Backfill says which ticks a backfill has.
	Backfill Backfill
}

// requestLife is how long a run that was ordered may wait for a replica.
const requestLife = time.Hour

// Order writes an order into the store, where replicas read it within five seconds; none has to
// be up. It returns the order as it was written, with its number, its time and the name of its
// request. An error may leave open whether the order was written; then it says so.
// [ErrNotRunning]: there is no run to end. [ErrRefused]: the order is not possible.
// fs.ErrNotExist: the job has no entry, since no scheduler has ever started it.
func (s *Scheduler) Order(ctx context.Context, o Order) (store.Order, error) {
	r, err := s.runner(o.Job)
	if err == nil && s.core.replica.Orders != nil {
		_ = s.core.replica.Orders.Refresh(ctx) // the order's times are by the store's clock
	}
	if err != nil {
		return store.Order{}, err
	}
	if err := s.checkOrder(&o, r); err != nil {
		return store.Order{}, control.Refuse(err)
	}
	now := s.core.replica.Clock.Best()
	order := store.Order{Kind: o.Kind, Job: o.Job, By: cmp.Or(o.By, s.Replica), Reason: o.Reason, Until: o.Until, Name: o.Request}
	target, err := r.Orderable(ctx, o.Kind)
	if err != nil {
		return store.Order{}, fmt.Errorf("%s %s: %w", o.Kind, o.Job, err)
	}
	switch o.Kind {
	case store.OrderBackfill:
		var plan runner.BackfillPlan
		plan, err = r.PlanBackfill(ctx, runner.Range(o.Backfill))
		order.Backfill = plan.Backfill
	case store.OrderCancelBackfill:
		order.Backfill, err = r.LastBackfill(ctx)
	}
	if err != nil {
		return store.Order{}, fmt.Errorf("%s %s: %w", o.Kind, o.Job, err)
	}
	if o.Kind == store.OrderRun {
		order.Until = cmp.Or(order.Until, now.Add(requestLife)).UTC()
		order.Name = cmp.Or(order.Name, "ordered-"+now.UTC().Format("20060102-150405-")+strings.ToLower(rand.Text()[:6]))
	}
	order.Token, order.About = target.Token, target.About
	if order, err = s.core.replica.Orders.Order(ctx, order, target.Served); err != nil {
		return order, fmt.Errorf("%s %s: %w", o.Kind, o.Job, err)
	}
	return order, nil
}

// Control returns what operators have ordered. It reads the store.
func (s *Scheduler) Control(ctx context.Context) (store.Control, error) {
	if err := s.Validate(); err != nil {
		return store.Control{}, err
	}
	if s.core.replica.Orders == nil {
		return store.Control{}, errNoOrders
	}
	return s.core.replica.Orders.Client.Read(ctx)
}

// plainText keeps what people write short and on one line.
var plainText = regexp.MustCompile(`^[^\x00-\x1f\x7f]{0,200}$`)

// checkOrder returns what is wrong with an order.
func (s *Scheduler) checkOrder(o *Order, r *runner.Runner) error {
	begins := o.Kind == store.OrderPause || o.Kind == store.OrderResume
	run := o.Kind == store.OrderRun
	fills := o.Kind == store.OrderBackfill || o.Kind == store.OrderCancelBackfill
	switch {
	case s.core.replica.Orders == nil:
		return errNoOrders
	case !begins && !run && !fills && o.Kind != store.OrderCancel && o.Kind != store.OrderStepDown:
		return wrong("kind of the order", quote(string(o.Kind)), "pause, resume, run, cancel, step-down, backfill and cancel-backfill")
	case r.EveryReplica() && !begins:
		return fmt.Errorf("%s runs on each replica: it can be paused and resumed", o.Job)
	case run && r.Singleton():
		return fmt.Errorf("%s is a singleton: it is not run by hand", o.Job)
	case fills && r.Singleton():
		return fmt.Errorf("%s is a singleton: it has no ticks", o.Job)
	case o.Kind != store.OrderBackfill && o.Backfill != Backfill{}:
		return fmt.Errorf("%s has no range: only a backfill has", o.Kind)
	case !plainText.MatchString(o.By):
		return wrong("name of who orders", quote(o.By), "up to 200 characters on one line")
	case !plainText.MatchString(o.Reason):
		return wrong("reason", quote(o.Reason), "up to 200 characters on one line")
	case !o.Until.IsZero() && !o.Until.After(s.core.replica.Clock.Best()):
		return wrong("end", o.Until.UTC().Format(time.RFC3339), "a time in the future")
	case !o.Until.IsZero() && o.Kind != store.OrderPause && !run:
		return fmt.Errorf("%s has no end", o.Kind)
	case o.Request != "" && !run:
		return fmt.Errorf("%s has no request: only a run has", o.Kind)
	case o.Request == "":
		return nil
	}
	return checkRequest(o.Request)
}
