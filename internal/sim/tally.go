package sim

import (
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A Tally is what a simulation was made of.
type Tally struct {
	Requests int
	Ticks    int
	Faults   map[string]int
	Crashes  map[string]int // by the point at which
}

// examine asks all replicas how they fare.
func (c *Cluster) examine() {
	for _, s := range c.slots {
		r := s.now()
		if r == nil {
			continue
		}
		h := r.Health()
		for job := range h.Broken {
			c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: "broken"})
		}
		for job := range h.Overrun {
			c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: "overrun"})
		}
		for _, job := range h.Stuck {
			c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: "stuck"})
		}
	}
}

// Add adds another simulation.
func (t *Tally) Add(o Tally) {
	t.Requests += o.Requests
	t.Ticks += o.Ticks
	for k, n := range o.Faults {
		t.Faults[k] += n
	}
	for k, n := range o.Crashes {
		t.Crashes[k] += n
	}
}

func (c *Cluster) tally() Tally {
	t := Tally{Faults: map[string]int{}, Crashes: c.traps.Hit}
	for f, n := range c.net.Met {
		t.Faults[string(f)] += n
	}
	for _, e := range c.log.Events {
		switch e.What {
		case trace.Request:
			t.Requests++
			if e.Op == "claim" && e.OK() {
				t.Ticks++
			}
			if e.Replica == trace.Operator && e.Job != "" {
				t.Faults["operator's "+e.Op]++
			}
		case trace.Deleted:
			if e.Job == "" {
				t.Faults["container deleted"]++
			}
		case trace.Corrupted:
			t.Faults["entry spoilt: "+e.Note]++
		case trace.Swept:
			t.Faults["unused lock removed"]++
		case trace.Again:
			t.Faults["by hand: an order that has left the record"]++
		case trace.Ordered:
			t.Faults["ordered: "+e.Op]++
		case trace.Unlocked:
			t.Faults["unlocked, and then "+e.Note]++
		case trace.Fared:
			t.Faults["health of a spoilt entry: "+e.Note]++
		case trace.Freeze, trace.Crash, trace.Overran, trace.Leased, trace.Down, trace.Blocked, trace.Woken:
			t.Faults[string(e.What)]++
		}
	}
	return t
}
