package soak_test

import (
	"time"
)

// A deed is what befalls the cluster at some time.
type deed struct {
	at time.Time
	do func(*cluster)
}

// A plan says what befalls a cluster in a stretch of time, which is told in days
// from its begin and times of the clock.
type plan struct {
	over  stretch
	zone  *time.Location
	deeds []deed
}

// at is an instant.
func (p *plan) at(day, hour, minute int) time.Time {
	t := p.over.from.In(p.zone)
	return time.Date(t.Year(), t.Month(), t.Day()+day, hour, minute, 0, 0, p.zone)
}

func (p *plan) add(at time.Time, do func(*cluster)) { p.deeds = append(p.deeds, deed{at, do}) }

// crash ends one replica.
func (p *plan) crash(at time.Time, slot int) {
	p.add(at, func(c *cluster) {
		if r := c.slots[slot].current(); r != nil {
			r.crash("crash")
		}
	})
}

// dethrone ends the replica that leads.
func (p *plan) dethrone(at time.Time) {
	p.add(at, func(c *cluster) {
		c.mu.Lock()
		s := c.seats[leader]
		c.mu.Unlock()
		if s != nil {
			s.crash("crash of the leader")
		}
	})
}

// step moves the wall clock of a replica.
func (p *plan) step(at time.Time, slot int, d time.Duration) {
	p.add(at, func(c *cluster) {
		if r := c.slots[slot].current(); r != nil {
			c.count("step of a clock")
			r.Step(d)
		}
	})
}

// outage has the service out of reach of all.
func (p *plan) outage(at time.Time, d time.Duration, f network) {
	name := "outage"
	switch {
	case d >= 24*time.Hour:
		name = "outage of a day"
	case d >= 4*time.Hour:
		name = "outage of hours"
	}
	p.add(at, func(c *cluster) { c.count(name); c.meet(f) })
	p.add(at.Add(d), func(c *cluster) { c.meet(nil) })
}

// partition cuts one replica off.
func (p *plan) partition(at time.Time, d time.Duration, slot int, f network) {
	var r *replica
	p.add(at, func(c *cluster) {
		if r = c.slots[slot].current(); r != nil {
			c.count("partition of a replica")
			c.cut(r.name, f)
		}
	})
	p.add(at.Add(d), func(c *cluster) {
		if r != nil {
			c.cut(r.name, nil)
		}
	})
}

// deploy brings the next version, which is changed unless next is nil.
func (p *plan) deploy(at time.Time, next *change) {
	p.add(at, func(c *cluster) { c.deploy(next) })
}

// closed has nobody up for a time. Who comes back has the next version.
func (p *plan) closed(at time.Time, d time.Duration, next *change) {
	name := "night with nobody up"
	if d > 24*time.Hour {
		name = "weekend with nobody up"
	}
	p.add(at, func(c *cluster) {
		c.count(name)
		for _, s := range c.slots {
			s.order(s.down)
		}
	})
	p.add(at.Add(d), func(c *cluster) {
		c.change(next)
		for _, s := range c.slots {
			s.order(s.up)
		}
	})
}

// scale brings one replica up or down.
func (p *plan) scale(at time.Time, slot int, up bool) {
	p.add(at, func(c *cluster) {
		if s := c.slots[slot]; up {
			s.order(s.up)
		} else {
			s.order(s.down)
		}
	})
}
