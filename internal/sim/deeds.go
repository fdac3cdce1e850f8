package sim

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// askAgain has another replica asked for the same run by hand again and again, while
// the first one may still run it, and after that.
func (c *Cluster) askAgain(d draw.PlannedFault, request string) {
	roll := draw.New(c.Seed, 0, "again "+request)
	for range 6 {
		time.Sleep(roll.Between(0, 20*time.Second))
		r := c.slots[(d.Slot+1)%len(c.slots)].now()
		if c.calm() {
			return
		}
		if r == nil || r.Gone() {
			continue
		}
		asked := make(chan struct{})
		r.byHand.Go(func() {
			defer close(asked)
			r.runNow(d.Job, request)
		})
		<-asked // a replica that goes on after a suspension would have many calls at once
	}
}

// carryOut has a planned fault happen, or begin.
func (c *Cluster) carryOut(d draw.PlannedFault) {
	s := c.slots[d.Slot]
	r := s.now()
	switch {
	case d.What == "arm":
		c.traps.Arm(d.Job, d.For)
	case d.What == "break now" || d.What == "break" || d.What == "delete" || d.What == "delete container":
		c.operate(d)
	case d.What == "spoil":
		if c.Store == nil && d.Job != trace.Foreign {
			c.wg.Go(func() { c.corrupt(d) })
		}
	case d.What == draw.Sweeps:
		c.wg.Go(func() { c.sweep(d) })
	case d.What == "deploy":
		c.wg.Go(c.deploy)
	case d.What == "restart":
		s.order("restart")
	case c.upheaval(d):
	case d.What == draw.InLead:
		c.befallInLead(d)
	case d.What == draw.Backfills:
		c.wg.Go(func() { c.backfill(d) })
	case d.What == draw.Orders:
		c.wg.Go(func() { c.giveOrder(d) })
	case r == nil || r.Gone():
	case d.What == "crash":
		r.Crash("any time")
	case d.What == "step":
		r.Step(d.For)
	case d.What == "freeze":
		r.Suspend(min(d.For, time.Until(c.end)), "any time")
	case d.What == "run now":
		request := c.newRequest("wish-%d")
		r.byHand.Go(func() { r.runNow(d.Job, request) })
		c.wg.Go(func() { c.askAgain(d, request) })
	case d.What == "step down":
		for _, s := range c.slots {
			if r := s.now(); r != nil && !r.Gone() {
				c.wg.Go(func() { r.stepDown(d.Job) })
			}
		}
	}
}

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

// upheaval begins one; it returns false if the planned fault is none.
func (c *Cluster) upheaval(d draw.PlannedFault) bool {
	switch {
	case d.What == draw.Downtime:
		c.goDown(d)
	case d.What == draw.Redeploy:
		c.edit()
		c.goDown(d)
		if c.platform != nil {
			c.wg.Go(c.platform.deployed)
		}
	case d.What == draw.AbortDeploy:
		c.version.Lock()
		c.version.visitors++
		n, defs := c.version.visitors, slices.Clone(c.version.now)
		c.version.Unlock()
		c.wg.Go(func() { c.visit(d, n, defs) })
	case d.What == draw.WakeCold:
		c.wg.Go(func() { c.wakeCold(d) })
	case d.What == draw.Looks:
		c.wg.Go(func() { c.look(d) })
	case d.What == draw.Chase:
		c.wg.Go(func() { c.chase(d.Job) })
	case d.What == draw.ToolLeases && c.Store == nil && d.Job != trace.Foreign:
		c.wg.Go(func() { c.holdByTool(d) })
	case d.What == draw.DeleteTwice && c.Store == nil && d.Job != trace.Foreign:
		c.wg.Go(func() { c.deleteTwice(d) })
	case d.What == draw.Unlocks && c.Store == nil && d.Job != trace.Foreign:
		c.wg.Go(func() { c.unlock(d) })
	default:
		return d.What == draw.ToolLeases || d.What == draw.DeleteTwice || d.What == draw.Unlocks
	}
	return true
}
