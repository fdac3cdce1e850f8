package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/runner"
)

// An Order is what an operator wants done.
type Order struct {
	Kind     record.OrderKind
	Job      string
	By       string    // empty: the name of the replica
	Reason   string    // it is shown
	Until    time.Time // the end of a pause, or of the time in which a run may start
	Request  string    // the name of a run; empty: a new one
	Backfill Range
}

// requestLife is how long a run that was ordered may wait for a replica.
const requestLife = time.Hour

// Order writes an order into the store.
func (d *Desk) Order(ctx context.Context, o Order) (record.Order, error) {
	r, err := d.Runner(o.Job)
	if err != nil {
		return record.Order{}, err
	}
	if d.Replica.Orders == nil {
		return record.Order{}, control.Refuse(ErrNoOrders)
	}
	_ = d.Replica.Orders.Refresh(ctx) // the order's times are by the store's clock
	now := d.Replica.Clock.Best()
	if err := o.check(r, now); err != nil {
		return record.Order{}, control.Refuse(err)
	}
	order := record.Order{Kind: o.Kind, Job: o.Job, By: cmp.Or(o.By, d.Replica.Name), Reason: o.Reason, Until: o.Until, Name: o.Request}
	target, err := r.Orderable(ctx, o.Kind, o.Request)
	if err != nil {
		return record.Order{}, fmt.Errorf("%s %s: %w", o.Kind, o.Job, err)
	}
	switch o.Kind {
	case record.OrderBackfill:
		var plan runner.BackfillPlan
		plan, err = r.PlanBackfill(ctx, o.Backfill)
		order.Backfill = plan.Backfill
	case record.OrderCancelBackfill:
		order.Backfill, err = r.LastBackfill(ctx)
	case record.OrderRun:
		order.Until = cmp.Or(order.Until, now.Add(requestLife)).UTC()
		order.Name = cmp.Or(order.Name, "ordered-"+now.UTC().Format("20060102-150405-")+strings.ToLower(rand.Text()[:6]))
	}
	if err != nil {
		return record.Order{}, fmt.Errorf("%s %s: %w", o.Kind, o.Job, err)
	}
	order.Token, order.About = target.Token, target.About
	if order, err = d.Replica.Orders.Order(ctx, order, &target.Record); err != nil {
		return order, fmt.Errorf("%s %s: %w", o.Kind, o.Job, err)
	}
	return order, nil
}

// plainText keeps what people write short and on one line.
var plainText = regexp.MustCompile(`^[^\x00-\x1f\x7f]{0,200}$`)

// check returns what is wrong with an order.
func (o *Order) check(r *runner.Runner, now time.Time) error {
	begins := o.Kind == record.OrderPause || o.Kind == record.OrderResume
	run := o.Kind == record.OrderRun
	fills := o.Kind == record.OrderBackfill || o.Kind == record.OrderCancelBackfill
	switch {
	case !begins && !run && !fills && o.Kind != record.OrderCancel && o.Kind != record.OrderStepDown:
		return wrong("kind of the order", quote(string(o.Kind)), "pause, resume, run, cancel, step-down, backfill and cancel-backfill")
	case r.EveryReplica() && !begins:
		return fmt.Errorf("%s runs on each replica: it can be paused and resumed", o.Job)
	case run && r.Singleton():
		return fmt.Errorf("%s is a singleton: it is not run by hand", o.Job)
	case fills && r.Singleton():
		return fmt.Errorf("%s is a singleton: it has no ticks", o.Job)
	case o.Kind != record.OrderBackfill && o.Backfill != Range{}:
		return fmt.Errorf("%s has no range: leave out from, to, all and parallel", o.Kind)
	case !plainText.MatchString(o.By):
		return wrong("name of who orders", quote(o.By), "up to 200 characters on one line")
	case !plainText.MatchString(o.Reason):
		return wrong("reason", quote(o.Reason), "up to 200 characters on one line")
	case !o.Until.IsZero() && !o.Until.After(now):
		return wrong("end", o.Until.UTC().Format(time.RFC3339), "a time in the future")
	case !o.Until.IsZero() && o.Kind != record.OrderPause && !run:
		return fmt.Errorf("%s has no end: leave out until", o.Kind)
	case o.Request != "" && !run:
		return fmt.Errorf("%s has no request: only a run has", o.Kind)
	case o.Request == "":
		return nil
	}
	return CheckRequest(o.Request)
}

// requestRule keeps requests short and plain: they are in the record, in logs, and in the ids of runs.
var requestRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// CheckRequest returns what is wrong with the name of a manual run.
func CheckRequest(name string) error {
	switch {
	case !requestRule.MatchString(name):
		return wrong("request", quote(name), "a letter or digit, then up to 63 of them or . : - _")
	case readsAsTick(name):
		return wrong("request", quote(name), "none that reads as a tick: Run.ID would be the id of that tick")
	}
	return nil
}

// readsAsTick reports whether a request looks like a tick in the id of a run.
func readsAsTick(request string) bool {
	at, err := time.Parse(time.RFC3339, request)
	return err == nil && at.UTC().Format(time.RFC3339) == request
}

// wrong returns the error for a value that is refused.
func wrong(field string, value any, allowed string) error {
	return fmt.Errorf("%s is %v: allowed is %s", field, value, allowed)
}

// quote quotes a value for an error, cut so that a wrong one cannot fill the log.
func quote(s string) string { return fmt.Sprintf("%.80q", s) }
