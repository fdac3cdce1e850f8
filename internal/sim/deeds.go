package sim

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// askAgain asks another replica for the same manual run again and again, while the
// first replica may still run it, and after that.
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
		r.byHand.Add(1) // it waits: a replica that goes on after a suspension would have many calls at once
		r.runNow(d.Job, request)
		r.byHand.Done()
	}
}

// carryOut has a planned fault happen, or begin.
func (c *Cluster) carryOut(d draw.PlannedFault) {
	side := map[string]func(draw.PlannedFault){draw.Sweeps: c.sweep, draw.WakeCold: c.wakeCold, draw.Looks: c.look,
		draw.Chase: c.chase, draw.Backfills: c.backfill, draw.Orders: c.giveOrder}
	if d.Job != trace.Foreign { // an operator has the entry within reach
		side["spoil"], side[draw.ToolLeases], side[draw.DeleteTwice], side[draw.Unlocks] = c.corrupt, c.holdByTool, c.deleteTwice, c.unlock
	}
	switch d.What {
	case "arm":
		c.traps.Arm(d.Job, d.For)
	case "break now", "break", "delete", "delete container":
		c.operate(d)
	case "deploy":
		c.wg.Go(c.deploy)
	case "restart":
		c.slots[d.Slot].order("restart")
	case draw.InLead:
		c.befallInLead(d)
	case draw.Downtime:
		c.goDown(d)
	case draw.Redeploy:
		c.edit()
		c.goDown(d)
		if c.platform != nil {
			c.wg.Go(c.platform.deployed)
		}
	case draw.AbortDeploy:
		defs, n := c.visitor()
		c.wg.Go(func() { c.visit(d, n, defs) })
	default:
		if does := side[d.What]; does != nil {
			c.wg.Go(func() { does(d) })
		} else if r := c.slots[d.Slot].now(); r != nil && !r.Gone() {
			c.befall(r, d)
		}
	}
}

// befall has something happen to a replica, or by it.
func (c *Cluster) befall(r *replica, d draw.PlannedFault) {
	switch d.What {
	case "crash":
		r.Crash("any time")
	case "step":
		r.Step(d.For)
	case "freeze":
		r.Suspend(min(d.For, time.Until(c.end)), "any time")
	case "run now":
		request := c.newRequest("wish-%d")
		r.byHand.Go(func() { r.runNow(d.Job, request) })
		c.wg.Go(func() { c.askAgain(d, request) })
	case "step down":
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
