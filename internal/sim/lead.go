package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// leadDeeds are what befalls in the lead. The network's are said by leadFaults.
var leadDeeds = []string{"restart", "restart", "restart", "step down", "pause", "resume", "run", "run now", "unlock", "break now", "break", "freeze", "freeze", "crash", "crash", "delete", "step", "lost", "lost", "lost and restart", "lost and restart"}

// befallInLead has one of leadDeeds happen, mostly to the replica that has the lease.
func (c *Cluster) befallInLead(d draw.PlannedFault) {
	r := draw.New(uint64(d.For), 0, d.Job)
	if n := c.holder(d.Job); n >= 0 && r.Chance(0.8) {
		d.Slot = n
	}
	deed := draw.Pick(r, leadDeeds...)
	switch deed {
	case "lost", "lost and restart":
		now := time.Now()
		c.net.Add(draw.NetworkFault{From: now, To: now.Add(r.Between(200*time.Millisecond, 4*time.Second)), Slot: d.Slot, Job: d.Job, Share: 1,
			Fault: draw.Pick(r, trace.DropReply, trace.DropReply, trace.Drop, trace.Late, trace.Slow, trace.Reset, trace.Applied500, trace.None)})
		if deed == "lost" {
			return
		}
		d.What = "restart"
		c.wg.Go(func() {
			if c.idle(r.Between(0, time.Second)) {
				c.carryOut(d)
			}
		})
		return
	case "pause", "resume", "run":
		if c.ordered {
			c.wg.Go(func() { c.orderInLead(d, deed, r) })
		}
		return
	case "unlock":
		d.What = draw.Unlocks
	case "freeze":
		d.What, d.For = deed, r.Between(100*time.Millisecond, 6*time.Second)
		if r.Chance(0.3) {
			d.For = r.Between(6*time.Second, 40*time.Second)
		}
	case "step":
		d.What, d.For = deed, r.Between(-3*time.Second, 3*time.Second)
	default:
		d.What = deed
	}
	c.carryOut(d)
}

// orderInLead gives an order of a kind.
func (c *Cluster) orderInLead(d draw.PlannedFault, kind string, r *draw.Roll) {
	o := soloist.Order{Kind: store.OrderKind(kind), Job: d.Job, By: trace.Orderer, Reason: "as drawn"}
	switch o.Kind {
	case store.OrderPause:
		o.Until = time.Now().Add(r.Between(10*time.Second, 40*time.Second))
	case store.OrderRun:
		o.Request = c.newRequest("ordered-%d")
	}
	if at := c.desk(d.Job, r); at != nil {
		_ = c.note(context.Background(), at, o, func() bool { return false })
	}
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
