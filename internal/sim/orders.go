package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// orders is what operators order for a job.
const orders = "order"

// orderKinds are drawn from. What begins is drawn as often as what ends.
var orderKinds = []store.OrderKind{store.OrderPause, store.OrderPause, store.OrderResume, store.OrderResume, store.OrderRun, store.OrderRun,
	store.OrderRun, store.OrderCancel, store.OrderCancel, store.OrderStepDown}

// orderPlan is what the operators of a seed order, and when.
func orderPlan(seed uint64, start, end time.Time, slots int, jobs []check.Definition) (all []plannedFault) {
	r := newRoll(seed, 0, "orders")
	for t := start.Add(r.around(2 * time.Minute)); t.Before(end); t = t.Add(r.around(3 * time.Minute)) {
		all = append(all, plannedFault{at: t, what: orders, slot: r.below(slots), job: jobs[r.below(len(jobs))].Name})
	}
	return all
}

// giveOrder draws an order and gives it: at a desk, or on a replica, whose calls may fail. One
// that ends a run comes while the job runs.
func (c *Cluster) giveOrder(d plannedFault) {
	r := newRoll(c.Seed, 0, orders, d.job, check.TimeOfDay(d.at))
	o := soloist.Order{Kind: pick(r, orderKinds...), Job: d.job, By: check.Orderer, Reason: "as drawn"}
	switch o.Kind {
	case store.OrderPause:
		if r.chance(0.3) {
			o.Until = time.Now().Add(r.between(5*time.Second, 10*time.Minute))
		}
	case store.OrderRun:
		c.version.Lock()
		c.version.requests++
		o.Request = fmt.Sprintf("ordered-%d", c.version.requests)
		c.version.Unlock()
		if r.chance(0.5) {
			o.Until = time.Now().Add(r.between(5*time.Second, 10*time.Minute))
		}
	case store.OrderCancel, store.OrderStepDown:
		if !c.untilItRuns(d.job, r) {
			return
		}
	}
	at, one := c.desk(d.job, r), c.slots[d.slot].now()
	if r.chance(0.4) && one != nil && !one.gone() && !one.ended() {
		done := make(chan struct{})
		one.byHand.Go(func() {
			defer close(done)
			c.note(one.ctx, one.Scheduler, o, one.gone)
		})
		<-done
		return
	}
	if at != nil {
		c.note(context.Background(), at, o, func() bool { return false })
	}
}

// note gives an order and notes it. Of a replica that is gone, no answer counts.
func (c *Cluster) note(ctx context.Context, s *soloist.Scheduler, o soloist.Order, gone func() bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	e := c.log.Add(check.Event{What: check.Ordered, Replica: s.Replica, Job: o.Job, Op: string(o.Kind), Request: o.Request, End: o.Until, Sent: time.Now()})
	written, err := s.Order(ctx, o)
	if gone() {
		return
	}
	c.log.Edit(func() {
		if err != nil {
			e.Cause = "not told"
			return
		}
		e.Heard, e.Token = time.Now(), written.Token
		if o.Kind == store.OrderRun {
			e.End = written.Until
		}
	})
}

// resumeAll ends all pauses, so that what is due at the end has to run.
func (c *Cluster) resumeAll() {
	if !c.ordered || c.NoFaultPlan {
		return
	}
	c.version.Lock()
	defs := c.version.now
	c.version.Unlock()
	for _, d := range defs {
		if s := c.desk(d.Name, newRoll(c.Seed, 0, "resume all", d.Name)); s != nil && d.Name != check.Foreign {
			c.note(context.Background(), s, soloist.Order{Kind: store.OrderResume, Job: d.Name, By: check.Orderer}, func() bool { return false })
		}
	}
}
