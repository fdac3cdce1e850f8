package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// wakeCold has a platform start a process for each tick of the job that runs
// everywhere, for a while. The process does what is due, and ends.
func (c *Cluster) wakeCold(d plannedFault) {
	c.version.Lock()
	defs := slices.Clone(c.version.now)
	c.version.Unlock()
	i := slices.IndexFunc(defs, func(d trace.Definition) bool { return d.EveryReplica })
	if i < 0 {
		return
	}
	defs[i].Paused = false
	r := newRoll(c.Seed, 0, "cold", trace.TimeOfDay(d.at))
	var all []time.Time
	for tick := defs[i].After(d.at); tick.Before(d.at.Add(d.d)) && tick.Before(c.end); tick = tick.Add(defs[i].Every) {
		all = append(all, tick)
	}
	for n, tick := range all {
		if !c.idle(time.Until(tick.Add(r.between(-500*time.Millisecond, 50*time.Second)))) {
			return
		}
		name := fmt.Sprintf("w%d.%d", d.at.UnixMilli()%10_000_000, n)
		c.wg.Go(func() { c.wake(name, defs, &defs[i], tick) })
	}
}

// wake is one process, which a platform starts for a tick that it names, or not.
func (c *Cluster) wake(name string, defs []trace.Definition, here *trace.Definition, tick time.Time) {
	r := newRoll(c.Seed, 0, "wake", name)
	skew := pick(r, 0, r.between(-20*time.Second, 20*time.Second), r.between(-time.Hour, time.Hour))
	m := newMachine(name, c.Replicas, NewClock(skew, int64(r.below(19_001))-9500), c.log, &traps{end: c.end})
	one := c.newReplica(m, defs, 0)
	wake := soloist.Wake{Jobs: []string{here.Name}}
	if r.chance(0.6) {
		wake.Tick = tick
	}
	ctx, cancel := context.WithTimeout(one.ctx, 5*time.Minute)
	defer cancel()
	e := c.log.Add(trace.Event{What: trace.Woken, Replica: name, Job: here.Name, Tick: wake.Tick, Sent: m.Now()})
	_, err := one.RunDue(ctx, wake)
	c.log.Edit(func() {
		if e.End = time.Now(); err != nil {
			e.Note = "refused"
		}
	})
}
