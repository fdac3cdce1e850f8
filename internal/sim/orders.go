package sim

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// orderKinds are drawn from. What begins is drawn as often as what ends.
var orderKinds = []soloist.OrderKind{soloist.OrderPause, soloist.OrderPause, soloist.OrderResume, soloist.OrderResume, soloist.OrderRun, soloist.OrderRun,
	soloist.OrderRun, soloist.OrderCancel, soloist.OrderCancel, soloist.OrderStepDown}

// giveOrder draws an order and gives it: at a desk, or on a replica, whose calls may fail. One
// that ends a run comes while the job runs.
func (c *Cluster) giveOrder(d draw.PlannedFault) {
	r := draw.New(c.Seed, 0, draw.Orders, d.Job, trace.TimeOfDay(d.At))
	o := soloist.Order{Kind: draw.Pick(r, orderKinds...), Job: d.Job, By: trace.Orderer, Reason: "as drawn"}
	switch o.Kind {
	case soloist.OrderPause:
		if r.Chance(0.3) {
			o.Until = time.Now().Add(r.Between(5*time.Second, 10*time.Minute))
		}
	case soloist.OrderRun:
		o.Request = c.newRequest("ordered-%d")
		if r.Chance(0.5) {
			o.Until = time.Now().Add(r.Between(5*time.Second, 10*time.Minute))
		}
		if r.Chance(0.5) {
			c.wg.Go(func() { c.askForServed(d, o.Request) })
		}
	case soloist.OrderCancel, soloist.OrderStepDown:
		if !c.untilItRuns(d.Job, r) {
			return
		}
	}
	at, one := c.desk(d.Job, r), c.slots[d.Slot].now()
	if r.Chance(0.4) && one != nil && !one.Gone() && !one.ended() {
		one.byHand.Add(1)
		defer one.byHand.Done()
		_ = c.note(one.ctx, one.Scheduler, o, one.Gone)
	} else if at != nil {
		_ = c.note(context.Background(), at, o, func() bool { return false })
	}
}

// askForServed asks a replica for a manual run with the ID of an order that was served, once the
// outcome has left the record: nothing there shows any more that it ran.
func (c *Cluster) askForServed(d draw.PlannedFault, request string) {
	for shown := false; ; {
		if !c.idle(5 * time.Second) {
			return
		}
		now := c.shows(d.Job, request)
		if shown && !now {
			break
		}
		shown = now
	}
	roll := draw.New(c.Seed, 0, "served "+request)
	for range 3 {
		if !c.idle(roll.Between(0, 20*time.Second)) {
			return
		}
		r := c.slots[roll.Below(len(c.slots))].now()
		if r == nil || r.Gone() || r.ended() {
			continue
		}
		r.byHand.Add(1)
		r.runNow(d.Job, request)
		r.byHand.Done()
	}
}

// shows reports whether the record of a job has the outcome of a request.
func (c *Cluster) shows(job, request string) bool {
	var rec record.Record
	text, _ := c.entry(job)
	return json.Unmarshal([]byte(text), &rec) == nil &&
		slices.ContainsFunc(rec.History, func(f event.Outcome) bool { return f.Request == request })
}

// atDesk has an operator give an order for a job, if there is such a job.
func (c *Cluster) atDesk(o soloist.Order, r *draw.Roll) error {
	at := c.desk(o.Job, r)
	if at == nil {
		return errNoJob
	}
	return c.note(context.Background(), at, o, func() bool { return false })
}

var errNoJob = errors.New("there is no such job")

// note gives an order and notes it. Of a replica that is gone, no answer counts.
func (c *Cluster) note(ctx context.Context, s *soloist.Scheduler, o soloist.Order, gone func() bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	e := c.log.Add(trace.Event{What: trace.Ordered, Replica: s.Replica, Job: o.Job, Op: string(o.Kind), Request: o.Request, End: o.Until, Sent: time.Now()})
	var written record.Order
	at, err := desk.Of(s)
	if err == nil {
		written, err = at.Order(ctx, desk.Order{Kind: record.OrderKind(o.Kind), Job: o.Job, By: o.By, Reason: o.Reason, Until: o.Until, Request: o.Request,
			Backfill: desk.Range(o.Backfill)})
	}
	if gone() {
		return err
	}
	if err == nil {
		c.ring(context.Background(), o.Job)
	}
	c.log.Edit(func() {
		if err != nil {
			e.Cause = "not told"
			return
		}
		e.Heard, e.Token = time.Now(), written.Token
		if seq := written.Backfill.Seq; seq != 0 {
			if written.Backfill.Parallel > 1 {
				c.beside.Store(seq, true)
			}
			e.Request, e.Spans = record.BackfillRequest(seq), written.Backfill.Spans
		}
		if o.Kind == soloist.OrderRun {
			e.End = written.Until
		}
	})
	return err
}

// resumeAll ends all pauses, so that what is due at the end has to run. A job whose entry is corrupted
// is resumed once the entry has been mended.
func (c *Cluster) resumeAll() {
	if !c.ordered || c.NoFaultPlan {
		return
	}
	defs, _ := c.program()
	for _, d := range defs {
		o, r := soloist.Order{Kind: soloist.OrderResume, Job: d.Name, By: trace.Orderer}, draw.New(c.Seed, 0, "resume all", d.Name)
		for tries := 0; d.Name != trace.Foreign && c.atDesk(o, r) != nil && tries < 40; tries++ {
			time.Sleep(5 * time.Second)
		}
	}
}

// leadDeeds are what happens in the lead. See leadFaults for the faults of the network.
var leadDeeds = []string{"restart", "restart", "restart", "step down", "pause", "resume", "run", "run now", "unlock", "break now", "break", "freeze", "freeze", "crash", "crash", "delete", "step", "lost", "lost", "lost and restart", "lost and restart"}

// orderInLead gives an order of a kind.
func (c *Cluster) orderInLead(d draw.PlannedFault, kind string, r *draw.Roll) {
	o := soloist.Order{Kind: soloist.OrderKind(kind), Job: d.Job, By: trace.Orderer, Reason: "as drawn"}
	switch o.Kind {
	case soloist.OrderPause:
		o.Until = time.Now().Add(r.Between(10*time.Second, 40*time.Second))
	case soloist.OrderRun:
		o.Request = c.newRequest("ordered-%d")
	}
	_ = c.atDesk(o, r)
}

// holder is the slot of the replica that acquired the lease of a job last, -1 if there is
// none, or it is gone.
func (c *Cluster) holder(job string) (slot int) {
	name := ""
	c.log.Edit(func() {
		for i := len(c.log.Events) - 1; i >= 0 && name == ""; i-- {
			if e := c.log.Events[i]; e.Job == job && e.Op == "acquire" && e.OK() {
				name = e.Replica
			}
		}
	})
	for i, s := range c.slots {
		if r := s.now(); r != nil && r.Machine.Name == name && !r.Gone() {
			return i
		}
	}
	return -1
}

// backfill orders that some ticks are run again: before the present, also from before the job, or those
// that were missed. Some backfills are cancelled.
func (c *Cluster) backfill(d draw.PlannedFault) {
	r := draw.New(c.Seed, 0, draw.Backfills, d.Job, trace.TimeOfDay(d.At))
	def := c.drawnNow(d.Job)
	if def == nil {
		return
	}
	to := time.Now().Add(-r.Between(2*time.Minute, time.Hour))
	o := soloist.Order{Kind: soloist.OrderBackfill, Job: d.Job, By: trace.Orderer,
		Backfill: soloist.Backfill{From: to.Add(-time.Duration(1+r.Below(10)) * def.Every), To: to, All: r.Chance(0.7)}}
	if !o.Backfill.All {
		o.Backfill.From = to.Add(-r.Between(5*time.Minute, time.Hour))
	}
	o.Backfill.Parallel = c.parallel(d)
	if c.atDesk(o, r) == nil && r.Chance(0.3) && c.idle(r.Between(0, 2*time.Minute)) {
		_ = c.atDesk(soloist.Order{Kind: soloist.OrderCancelBackfill, Job: d.Job, By: trace.Orderer}, r)
	}
}

// parallel is how many ticks of a backfill run at a time. Ticks of a group run one at a time.
func (c *Cluster) parallel(d draw.PlannedFault) int {
	r := draw.New(c.Seed, 0, "parallel", d.Job, trace.TimeOfDay(d.At))
	if def := c.drawnNow(d.Job); def.Group != "" || r.Chance(0.4) {
		return 0
	}
	return 1 + r.Below(5)
}

// drawnNow returns the definition of a job in the version of now, nil if it has none.
func (c *Cluster) drawnNow(job string) *trace.Definition {
	defs, _ := c.program()
	if d := pickJob(defs, job); len(d) > 0 {
		return &d[0]
	}
	return nil
}
