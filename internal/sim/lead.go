package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// inLead is what befalls a cluster in the last seconds before a tick of a job, or just after
// it, when a replica has the lease of it, or has claimed it.
const inLead = "in the lead"

// drawAhead draws which jobs claim their ticks ahead, and how often the most frequent job is
// due: more often than its lease is acquired before a tick, in some seeds.
func drawAhead(all []trace.Definition, seed uint64) {
	r := newRoll(seed, 0, "ahead")
	if d := &all[0]; r.chance(0.4) {
		d.Every = pick(r, time.Second, 2*time.Second, 5*time.Second, 5*time.Second)
		d.Schedule = "@every " + d.Every.String()
		if d.HeartbeatTimeout > 0 {
			d.HeartbeatTimeout = 12*time.Second + 2*odd
		}
	}
	for i := range all {
		if d := &all[i]; d.Every > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			d.ClaimAhead = r.chance(0.6)
		}
	}
}

// leadDeeds are what befalls in the lead. The network's are said by leadFaults.
var leadDeeds = []string{"restart", "restart", "restart", "step down", "pause", "resume", "run", "run now", "unlock", "break now", "break", "freeze", "freeze", "crash", "crash", "delete", "step", "lost", "lost", "lost and restart", "lost and restart"}

// deedsInLead is the plan of a seed for the last seconds before ticks, in half of the seeds.
func deedsInLead(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []plannedFault) {
	r := newRoll(seed, 0, inLead)
	if quiet(seed) != "" || !r.chance(0.6) {
		return nil
	}
	for t := start.Add(r.around(time.Minute)); t.Before(end); t = t.Add(r.around(90 * time.Second)) {
		d := &jobs[r.below(len(jobs))]
		if d.Every == 0 || d.EveryReplica || d.Name == trace.Foreign || d.Every > 5*time.Minute && r.chance(0.5) {
			d = &jobs[0]
		}
		at := d.After(t.Add(3 * time.Second)).Add(r.between(-2500*time.Millisecond, 500*time.Millisecond))
		one := plannedFault{at: at, what: inLead, slot: r.below(slots), job: d.Name, d: time.Duration(r.next() >> 1)}
		if at.After(start) && at.Before(end) {
			all = append(all, one)
		}
	}
	return all
}

// befallInLead has one of leadDeeds happen, mostly to the replica that has the lease.
func (c *Cluster) befallInLead(d plannedFault) {
	r := newRoll(uint64(d.d), 0, d.job)
	if n := c.holder(d.job); n >= 0 && r.chance(0.8) {
		d.slot = n
	}
	deed := pick(r, leadDeeds...)
	switch deed {
	case "lost", "lost and restart":
		now := time.Now()
		c.net.add(NetworkFault{From: now, To: now.Add(r.between(200*time.Millisecond, 4*time.Second)), Slot: d.slot, Job: d.job, Share: 1,
			Fault: pick(r, trace.DropReply, trace.DropReply, trace.Drop, trace.Late, trace.Slow, trace.Reset, trace.Applied500, trace.None)})
		if deed == "lost" {
			return
		}
		d.what = "restart"
		c.wg.Go(func() {
			if c.idle(r.between(0, time.Second)) {
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
		d.what = unlocks
	case "freeze":
		d.what, d.d = deed, r.between(100*time.Millisecond, 6*time.Second)
		if r.chance(0.3) {
			d.d = r.between(6*time.Second, 40*time.Second)
		}
	case "step":
		d.what, d.d = deed, r.between(-3*time.Second, 3*time.Second)
	default:
		d.what = deed
	}
	c.carryOut(d)
}

// orderInLead gives an order of a kind.
func (c *Cluster) orderInLead(d plannedFault, kind string, r *roll) {
	o := soloist.Order{Kind: store.OrderKind(kind), Job: d.job, By: trace.Orderer, Reason: "as drawn"}
	switch o.Kind {
	case store.OrderPause:
		o.Until = time.Now().Add(r.between(10*time.Second, 40*time.Second))
	case store.OrderRun:
		o.Request = c.newRequest("ordered-%d")
	}
	if at := c.desk(d.job, r); at != nil {
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
		if r := s.now(); r != nil && r.machine.name == name && !r.gone() {
			return i
		}
	}
	return -1
}

// add has the network meet a fault from now on.
func (n *Network) add(f NetworkFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.more = append(n.more, f)
}
