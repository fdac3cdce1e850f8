package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

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

// goDown ends all replicas, each in its way, and lets none start for a while.
func (c *Cluster) goDown(d draw.PlannedFault) {
	until := d.At.Add(d.For)
	c.version.Lock()
	c.version.down = until
	c.version.Unlock()
	c.log.Add(trace.Event{What: trace.Down, End: until})
	for i, s := range c.slots {
		if draw.New(c.Seed, i, draw.Downtime, trace.TimeOfDay(d.At)).Chance(0.5) {
			s.order("restart")
		} else if r := s.now(); r != nil {
			r.Crash(draw.Downtime)
		}
	}
}

// downUntil is when replicas may start again: no downtime outlasts the faults.
func (c *Cluster) downUntil() time.Time {
	c.version.Lock()
	defer c.version.Unlock()
	if c.version.down.After(c.end) {
		return c.end
	}
	return c.version.down
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

// settling is how long the cluster gets after all faults: longer where the
// youngest definition is that of an aborted deploy, which others respect for
// some minutes, and where shards are to be spread evenly.
func (c *Cluster) settling() time.Duration {
	youngest := ""
	c.log.Edit(func() {
		var at time.Time
		for _, e := range c.log.Events {
			if e.What == trace.Up && e.Time.After(at) && e.Time.Before(c.end) {
				at, youngest = e.Time, e.Cause
			}
		}
	})
	rest := trace.Settling
	if c.platform != nil {
		rest += draw.New(c.Seed, 0, "calm at zero").Between(2*time.Hour, 8*time.Hour)
	}
	if youngest == trace.Aborted {
		rest += trace.Patience
	}
	if slices.ContainsFunc(c.Program, func(d trace.Definition) bool { return d.Spread() }) {
		rest += trace.Spreading
	}
	return rest
}
