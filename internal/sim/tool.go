package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// tool is the name of a program that leases entries and claims nothing.
const tool = "tool"

// holdByTool has a tool hold the lease of a job's entry for a while, once it
// gets it. The lease is infinite, or finite and renewed. It then is released,
// runs out, or is broken by an operator.
func (c *Cluster) holdByTool(d draw.PlannedFault) {
	r := draw.New(c.Seed, 0, tool, d.Job, trace.TimeOfDay(d.At))
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(r.Next()), r.Next()>>16)
	span := draw.Pick(r, blobtest.Forever, 15*time.Second, time.Minute)
	acquire := []string{"x-ms-proposed-lease-id", id, "x-ms-lease-duration", strconv.Itoa(int(span / time.Second))}
	for tries := 0; !c.request("acquire", d.Job, acquire...).OK(); tries++ {
		if tries == 30 || !c.idle(r.Between(time.Second, 5*time.Second)) {
			return
		}
	}
	c.keepByTool(d.Job, id, span, time.Now().Add(d.For))
	if c.calm() {
		time.Sleep(r.Between(0, time.Second)) // all tools stop now, one after the other
	}
	switch {
	case span == blobtest.Forever && r.Chance(0.5):
		c.operate(draw.PlannedFault{What: "break now", Job: d.Job})
	case span == blobtest.Forever || r.Chance(0.5) || c.calm():
		c.request("release", d.Job, world.LeaseID, id)
	default:
		c.idle(span)
	}
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
		if span != blobtest.Forever && !c.request("renew", job, world.LeaseID, id).OK() {
			return
		}
	}
}
