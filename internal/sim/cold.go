package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// wakeCold has a platform start a process for each tick of the job that runs
// everywhere, for a while. The process does what is due, and ends.
func (c *Cluster) wakeCold(d draw.PlannedFault) {
	defs, _ := c.program()
	defs = slices.Clone(defs)
	i := slices.IndexFunc(defs, func(d trace.Definition) bool { return d.EveryReplica })
	if i < 0 {
		return
	}
	defs[i].Paused = false
	r := draw.New(c.Seed, 0, "cold", trace.TimeOfDay(d.At))
	var all []time.Time
	for tick := defs[i].After(d.At); tick.Before(d.At.Add(d.For)) && tick.Before(c.end); tick = tick.Add(defs[i].Every) {
		all = append(all, tick)
	}
	for n, tick := range all {
		if !c.idle(time.Until(tick.Add(r.Between(-500*time.Millisecond, 50*time.Second)))) {
			return
		}
		name := fmt.Sprintf("w%d.%d", d.At.UnixMilli()%10_000_000, n)
		c.wg.Go(func() { c.wake(name, defs, &defs[i], tick) })
	}
}

// wake is one process, which a platform starts for a tick that it names, or not.
func (c *Cluster) wake(name string, defs []trace.Definition, here *trace.Definition, tick time.Time) {
	r := draw.New(c.Seed, 0, "wake", name)
	skew := draw.Pick(r, 0, r.Between(-20*time.Second, 20*time.Second), r.Between(-time.Hour, time.Hour))
	m := world.NewMachine(name, c.Replicas, world.NewClock(skew, int64(r.Below(19_001))-9500), c.log, &world.Traps{End: c.end})
	one := c.newReplica(m, defs, 0)
	wake := soloist.Wake{Jobs: []string{here.Name}}
	if r.Chance(0.6) {
		wake.Tick = tick
	}
	ctx, cancel := context.WithTimeout(one.ctx, 5*time.Minute)
	defer cancel()
	_, _ = one.RunDue(ctx, wake)
}
