package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// goDown ends all replicas, each in its way, and lets none start for a while.
func (c *Cluster) goDown(d draw.PlannedFault) {
	until := d.At.Add(d.For)
	c.version.Lock()
	c.version.down = until
	c.version.Unlock()
	for i, s := range c.slots {
		if draw.New(c.Seed, i, draw.Downtime, trace.TimeOfDay(d.At)).Chance(0.5) {
			s.order("restart")
		} else if r := s.now(); r != nil {
			r.Crash(draw.Downtime)
		}
	}
}

// visitor is what the next replica of an aborted deploy begins with, and its number.
func (c *Cluster) visitor() ([]trace.Definition, int) {
	c.version.Lock()
	defer c.version.Unlock()
	c.version.visitors++
	return slices.Clone(c.version.now), c.version.visitors
}

// visit has the nth replica of an aborted deploy up for a while.
func (c *Cluster) visit(d draw.PlannedFault, n int, defs []trace.Definition) {
	r := draw.New(c.Seed, n, "visitor")
	draw.Redefine(defs, d.Job, r)
	draw.Follow(defs)
	draw.KeepWhole(defs, d.Job)
	s := &slot{Cluster: c, index: c.Replicas + n}
	one := s.startWith(fmt.Sprintf("v%d.1", n), defs, trace.Aborted)
	if c.idle(d.For); r.Chance(0.5) {
		one.Crash(trace.Aborted)
	} else {
		one.stop()
	}
}

// chase stops the replica that runs a job, six times in a row.
func (c *Cluster) chase(d draw.PlannedFault) {
	for stops := 0; stops < 6; {
		for _, s := range c.slots {
			if r := s.now(); r != nil && !r.Gone() && slices.Contains(r.Health().Running, d.Job) {
				s.order("restart")
				stops++
			}
		}
		if !c.idle(2 * time.Second) {
			return
		}
	}
}

// deleteTwice deletes an entry, and then the entry that is created in its place.
func (c *Cluster) deleteTwice(d draw.PlannedFault) {
	c.operate(draw.PlannedFault{What: "delete", Job: d.Job})
	for range 100 {
		if _, etag := c.entry(d.Job); etag != "" {
			break
		}
		if !c.idle(50 * time.Millisecond) {
			return
		}
	}
	if c.idle(d.For) {
		c.operate(draw.PlannedFault{What: "delete", Job: d.Job})
	}
}

// tool is the name of a program that leases entries and claims nothing.
const tool = "tool"

// holdByTool has a tool hold the lease of a job's entry for a while, once it
// gets it. The lease is infinite, or finite and renewed. It then is released,
// runs out, or is broken by an operator.
func (c *Cluster) holdByTool(d draw.PlannedFault) {
	r := draw.New(c.Seed, 0, tool, d.Job, trace.TimeOfDay(d.At))
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(r.Next()), r.Next()>>16)
	span := draw.Pick(r, blobtest.Forever, 15*time.Second, time.Minute)
	if c.Store != nil { // it has no infinite leases
		span = max(span, draw.Fence)
	}
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
