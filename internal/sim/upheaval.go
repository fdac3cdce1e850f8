package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
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
func (c *Cluster) chase(job string) {
	for stops := 0; stops < 6; {
		for _, s := range c.slots {
			if r := s.now(); r != nil && !r.Gone() && slices.Contains(r.Health().Running, job) {
				s.order("restart")
				stops++
			}
		}
		if !c.idle(2 * time.Second) {
			return
		}
	}
}

// deleteTwice deletes an entry, and the one that is made in its place.
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
