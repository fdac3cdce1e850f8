package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// liveBefore has one replica run the most frequent job, in every tenth seed, and
// then no replica for so many days that more ticks come due than a record counts
// in one range.
func (c *Cluster) liveBefore() {
	often := pickJob(c.Program, "often")
	if c.NoFaultPlan || c.Seed%10 != 3 || len(often) == 0 {
		return
	}
	r := draw.New(c.Seed, 0, "before")
	s := &slot{Cluster: c, index: c.Replicas}
	one := s.startWith("b1.1", often, "")
	time.Sleep(r.Between(20*time.Second, time.Minute))
	one.stop()
	days := draw.Pick(r, 12, 11, 14)
	gap := time.Duration(days)*24*time.Hour + r.Between(0, time.Hour)
	time.Sleep(gap)
}

// pickJob returns the definition with a name alone.
func pickJob(all []trace.Definition, name string) []trace.Definition {
	for i := range all {
		if all[i].Name == name {
			return all[i : i+1 : i+1]
		}
	}
	return nil
}

// edit makes the next version of the program, which replicas start with from now
// on.
func (c *Cluster) edit() *draw.Roll {
	c.version.Lock()
	defer c.version.Unlock()
	var n int // of replicas so far
	c.log.Edit(func() { n = len(c.log.Fleet) })
	r := draw.New(c.Seed, n, "deploy", trace.TimeOfDay(time.Now()))
	before := c.version.now
	c.version.now = draw.Next(before, r)
	if c.platform != nil {
		c.version.now = draw.Anew(before, c.version.now, draw.New(c.Seed, n, "anew", trace.TimeOfDay(time.Now())))
	}
	draw.Redate(c.version.now, draw.New(c.Seed, n, "closed", trace.TimeOfDay(time.Now())))
	c.version.deploys++
	return r
}

// deploy restarts one replica after the other with the next version.
func (c *Cluster) deploy() {
	r := c.edit()
	if c.platform != nil {
		c.platform.deployed()
		return
	}
	for _, s := range c.slots {
		s.order("restart")
		select {
		case <-time.After(r.Between(time.Second, 40*time.Second)):
		case <-c.healed:
			time.Sleep(time.Second) // those that come back up at that instant have to be there
		}
	}
}

// live has one replica up after the other, until the cluster is over.
func (s *slot) live() {
	time.Sleep(draw.New(s.Seed, s.index, "first start").Between(0, 10*time.Second))
	for n := 1; ; n++ {
		r := s.start(fmt.Sprintf("r%d.%d", s.index, n))
		s.mu.Lock()
		s.current = r
		s.mu.Unlock()
		roll := draw.New(s.Seed, n, "pause", r.Name)
		var wait time.Duration
		select {
		case <-r.Dead:
			wait = roll.Between(time.Second, 3*time.Minute)
		case <-s.orders:
			r.stop()
			wait = roll.Between(0, 20*time.Second)
		case <-s.over:
			r.stop()
			return
		}
		s.idle(max(wait, time.Until(s.downUntil())))
	}
}

// start brings a replica up with the program's version of now.
func (s *slot) start(name string) *replica {
	defs, _ := s.program()
	return s.startWith(name, defs, "")
}

// bring makes the replica of an event, whose clock is wrong. It does not run yet.
func (s *slot) bring(up trace.Event, defs []trace.Definition) (one *replica, r *draw.Roll, e *trace.Event) {
	r = draw.New(s.Seed, 0, "replica", up.Replica)
	skew := r.Between(-2*time.Second, 2*time.Second)
	if r.Chance(0.3) {
		skew = r.Between(-2*time.Hour, 2*time.Hour)
	}
	m := world.NewMachine(up.Replica, s.index, world.NewClock(skew, int64(r.Below(19_001))-9500), s.log, &s.traps)
	one = s.newReplica(m, defs, draw.Grace(r))
	one.stays = r.Chance(0.3)
	m.Quit = func() { s.order("restart") }
	up.What, up.Note = trace.Up, fmt.Sprintf("%sskew %s drift %d grace %s", up.Note, skew, m.Drift, one.Grace)
	return one, r, s.log.Add(up)
}

// startWith brings a replica up. A visitor has a reason why it does not stay.
func (s *slot) startWith(name string, defs []trace.Definition, visitor string) *replica {
	one, r, up := s.bring(trace.Event{Replica: name, Cause: visitor}, defs)
	onWakeUps := s.index == 0 && r.Chance(0.2) && !s.calm() && s.Draw == "" // a draw's replicas stay up
	if onWakeUps {
		s.log.Edit(func() { up.Cause = "woken up" })
	}
	_, version := s.program()
	s.begin(one, func() {
		one.useLocks()
		one.doOnces(version)
		if onWakeUps {
			one.wakeUps(r)
		} else if err := one.Run(one.ctx); err != nil {
			panic(err)
		}
	})
	return one
}

// wakeUps is a replica that a platform wakes up now and then.
func (r *replica) wakeUps(roll *draw.Roll) {
	for r.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(r.ctx, 5*time.Minute)
		_, _ = r.RunDue(ctx, soloist.Wake{}) // what went wrong shows in the record
		cancel()
		r.Rest(r.ctx, roll.Between(0, time.Minute))
	}
}
