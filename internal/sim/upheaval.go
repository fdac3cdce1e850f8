package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Upheavals are what befalls a whole cluster or its operation, beside the
// faults of single machines and requests.
const (
	downtime    = "downtime"      // no replica is up for a while
	toolLeases  = "tool leases"   // a tool holds the lease of an entry and claims nothing
	abortDeploy = "abort deploy"  // a replica with another definition is up for seconds
	deleteTwice = "delete twice"  // an entry is deleted, and again within a second
	chase       = "chase"         // a replica is stopped whenever it runs the job
	stopInClaim = "stop in claim" // a replica is stopped while it acquires or claims
	readOnly    = "read only"     // a replica may not write
	redeploy    = "redeploy"      // all replicas are replaced at once, by the next version, while a tick comes due
	wakeCold    = "wake cold"     // a platform starts a process for each tick
)

// stopping is the length of a trap that stops the replica.
const stopping = -time.Second

// quiet is the one upheaval of a quiet seed, in which nothing else goes wrong;
// empty for any other seed. Promises that hold where nothing else happens are
// judged in those.
func quiet(seed uint64) string {
	kinds := []string{downtime, abortDeploy, readOnly, toolLeases, chase, stopInClaim, deleteTwice}
	if seed%10 != 7 {
		return ""
	}
	return kinds[seed/10%uint64(len(kinds))]
}

// upheavals is the plan of a seed's upheavals.
func upheavals(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []plannedFault) {
	r, only := newRoll(seed, 0, "upheavals"), quiet(seed)
	every := func(what string, mean time.Duration, f func(d *plannedFault)) {
		if only != "" && only != what || only == "" && r.chance(0.4) {
			return
		}
		if only != "" {
			mean /= 3
		}
		for t := start.Add(r.around(mean)); t.Before(end); t = t.Add(r.around(mean)) {
			d := plannedFault{at: t, what: what, slot: r.below(slots), job: jobs[r.below(len(jobs))].Name}
			f(&d)
			all = append(all, d)
		}
	}
	every(downtime, 90*time.Minute, func(d *plannedFault) { d.d = pick(r, 30*time.Second, 2*time.Minute, 12*time.Minute, 45*time.Minute) })
	every(toolLeases, 40*time.Minute, func(d *plannedFault) { d.d = pick(r, 20*time.Second, 3*time.Minute, 10*time.Minute) })
	every(abortDeploy, time.Hour, func(d *plannedFault) { d.d = r.between(2*time.Second, time.Minute) })
	every(deleteTwice, 2*time.Hour, func(d *plannedFault) { d.d = r.between(0, time.Second) })
	every(chase, time.Hour, func(d *plannedFault) { d.job = "count" })
	every(stopInClaim, 10*time.Minute, func(d *plannedFault) {
		d.what, d.job, d.d = "arm", pick(r, "claim before", "claim applied", "acquire applied"), stopping
	})
	every(redeploy, 40*time.Minute, func(d *plannedFault) {
		d.at = d.at.Truncate(commonEvery).Add(commonEvery - r.between(time.Second, 15*time.Second))
		d.d = r.between(5*time.Second, 40*time.Second)
	})
	every(unlocks, 8*time.Minute, func(*plannedFault) {})
	every(wakeCold, 40*time.Minute, func(d *plannedFault) { d.d = pick(r, 3*time.Minute, 10*time.Minute) })
	every(looks, time.Minute, func(*plannedFault) {})
	return slices.DeleteFunc(all, func(d plannedFault) bool { return !d.at.Before(end) })
}

// commonEvery is how often all schedules that a deploy may choose from have a tick
// in common.
const commonEvery = 6 * time.Minute

// upheaval begins one; it returns false if the planned fault is none.
func (c *Cluster) upheaval(d plannedFault) bool {
	switch {
	case d.what == downtime:
		c.goDown(d)
	case d.what == redeploy:
		c.edit()
		c.goDown(d)
		if c.platform != nil {
			c.wg.Go(c.platform.deployed)
		}
	case d.what == abortDeploy:
		c.version.Lock()
		c.version.visitors++
		n, defs := c.version.visitors, slices.Clone(c.version.now)
		c.version.Unlock()
		c.wg.Go(func() { c.visit(d, n, defs) })
	case d.what == wakeCold:
		c.wg.Go(func() { c.wakeCold(d) })
	case d.what == looks:
		c.wg.Go(func() { c.look(d) })
	case d.what == chase:
		c.wg.Go(func() { c.chase(d.job) })
	case d.what == toolLeases && c.Store == nil && d.job != trace.Foreign:
		c.wg.Go(func() { c.holdByTool(d) })
	case d.what == deleteTwice && c.Store == nil && d.job != trace.Foreign:
		c.wg.Go(func() { c.deleteTwice(d) })
	case d.what == unlocks && c.Store == nil && d.job != trace.Foreign:
		c.wg.Go(func() { c.unlock(d) })
	default:
		return d.what == toolLeases || d.what == deleteTwice || d.what == unlocks
	}
	return true
}

// goDown ends all replicas, each in its way, and lets none start for a while.
func (c *Cluster) goDown(d plannedFault) {
	until := d.at.Add(d.d)
	c.version.Lock()
	c.version.down = until
	c.version.Unlock()
	c.log.Add(trace.Event{What: trace.Down, End: until})
	for i, s := range c.slots {
		if newRoll(c.Seed, i, downtime, trace.TimeOfDay(d.at)).chance(0.5) {
			s.order("restart")
		} else if r := s.now(); r != nil {
			r.crash(downtime)
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
func (c *Cluster) visit(d plannedFault, n int, defs []trace.Definition) {
	r := newRoll(c.Seed, n, "visitor")
	redefine(defs, d.job, r)
	follow(defs)
	keepWhole(defs, d.job)
	s := &slot{Cluster: c, index: c.Replicas + n}
	one := s.startWith(fmt.Sprintf("v%d.1", n), defs, trace.Aborted)
	if c.idle(d.d); r.chance(0.5) {
		one.crash(trace.Aborted)
	} else {
		one.stop()
	}
}

// redefine gives a job another schedule, or makes a singleton of it, or a job of
// a singleton.
func redefine(defs []trace.Definition, job string, r *roll) {
	for i := range defs {
		d := &defs[i]
		if d.Name != job || d.Name == trace.Foreign || d.EveryReplica {
			continue
		}
		d.Follows, d.FollowsAny = "", false
		unlimited(d)
		if d.Every > 0 && r.chance(0.3) {
			d.Every, d.Schedule, d.Group = 0, "", ""
			continue
		}
		d.Every = pick(r, 7*time.Minute, 24*time.Hour)
		d.Schedule = "@every " + d.Every.String()
	}
}

// chase stops the replica that runs a job, six times in a row.
func (c *Cluster) chase(job string) {
	for stops := 0; stops < 6; {
		for _, s := range c.slots {
			if r := s.now(); r != nil && !r.gone() && slices.Contains(r.Health().Running, job) {
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
func (c *Cluster) deleteTwice(d plannedFault) {
	c.operate(plannedFault{what: "delete", job: d.job})
	for range 100 {
		if _, etag := c.entry(d.job); etag != "" {
			break
		}
		if !c.idle(50 * time.Millisecond) {
			return
		}
	}
	if c.idle(d.d) {
		c.operate(plannedFault{what: "delete", job: d.job})
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
		rest += newRoll(c.Seed, 0, "calm at zero").between(2*time.Hour, 8*time.Hour)
	}
	if youngest == trace.Aborted {
		rest += trace.Patience
	}
	if slices.ContainsFunc(c.Program, func(d trace.Definition) bool { return d.Spread() }) {
		rest += trace.Spreading
	}
	return rest
}
