package sim

import (
	"fmt"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"strconv"
	"time"
)

// tool is the name of a program that leases entries and claims nothing.
const tool = "tool"

// holdByTool has a tool hold the lease of a job's entry for a while, once it
// gets it. The lease is infinite, or finite and renewed. It then is released,
// runs out, or is broken by an operator.
func (c *Cluster) holdByTool(d plannedFault) {
	r := newRoll(c.Seed, 0, tool, d.job, trace.TimeOfDay(d.at))
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(r.next()), r.next()>>16)
	span := pick(r, blobtest.Forever, 15*time.Second, time.Minute)
	acquire := []string{"x-ms-proposed-lease-id", id, "x-ms-lease-duration", strconv.Itoa(int(span / time.Second))}
	for tries := 0; !c.request("acquire", d.job, acquire...).OK(); tries++ {
		if tries == 30 || !c.idle(r.between(time.Second, 5*time.Second)) {
			return
		}
	}
	e := c.log.Add(trace.Event{What: trace.Leased, Job: d.job})
	c.keepByTool(d.job, id, span, time.Now().Add(d.d))
	if c.calm() {
		time.Sleep(r.between(0, time.Second)) // all tools stop now, one after the other
	}
	switch {
	case span == blobtest.Forever && r.chance(0.5):
		c.operate(plannedFault{what: "break now", job: d.job})
	case span == blobtest.Forever || r.chance(0.5) || c.calm():
		c.request("release", d.job, leaseID, id)
	default:
		c.idle(span)
	}
	c.log.Edit(func() { e.End = time.Now() })
}

// keepByTool renews until end, or until the lease is lost.
func (c *Cluster) keepByTool(job, id string, span time.Duration, end time.Time) {
	for time.Now().Before(end) {
		step := time.Until(end)
		if span != blobtest.Forever {
			step = min(step, span/3)
		}
		if !c.idle(step) {
			return
		}
		if span != blobtest.Forever && !c.request("renew", job, leaseID, id).OK() {
			return
		}
	}
}
