package draw

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A PlannedFault is what happens to a cluster at some time, or what its operators do to it.
type PlannedFault struct {
	At   time.Time
	What string
	Slot int
	Job  string
	For  time.Duration
}

// NetworkFaults is what the network of a seed does: a background of single faults, and times in
// which they are many, or the network is cut.
func NetworkFaults(seed uint64, start, end time.Time, slots int) (all []NetworkFault) {
	r := New(seed, 0, "weather")
	if only := quiet(seed); only == readOnly {
		return []NetworkFault{{From: start, To: end, Slot: r.Below(slots), Fault: trace.ReadOnly, Share: 1}}
	} else if only != "" {
		return nil
	}
	if r.Chance(0.1) {
		return nil // a fine day
	}
	for t := start.Add(r.Around(3 * time.Minute)); t.Before(end); t = t.Add(r.Around(6 * time.Minute)) {
		s := NetworkFault{From: t, Slot: r.Below(slots), Share: 1}
		d := r.Between(time.Second, 90*time.Second)
		switch r.Below(9) {
		case 0: // it does not get through
			s.Fault = trace.Drop
		case 1: // it gets through, and nothing comes back
			s.Fault = trace.DropReply
		case 2:
			s.Fault = trace.Refuse
		case 3:
			s.Fault, s.Share = trace.Slow, r.share()
		case 4:
			s.Fault, s.Slot, d = trace.Busy, -1, time.Second+r.Around(2*time.Minute)
			s.Share = 0.05 + r.share()*0.95
		case 5:
			s.Fault, s.Share = trace.Late, r.share()
		case 6: // it may read and lease, but not write
			if s.Fault, d = trace.ReadOnly, d+r.Around(3*time.Minute); r.Chance(0.1) {
				d = end.Sub(t)
			}
		default:
			s.Share = 0.05 + r.share()*0.6
		}
		if r.Chance(0.2) {
			s.Slot = -1
		}
		s.To = t.Add(d)
		all = append(all, s)
	}
	all = append(all, pages(seed, start, end, slots)...)
	return append(all, NetworkFault{From: start, To: end, Slot: -1, Share: r.share() * 0.01})
}

// pages is the times in which another server answers one replica in the service's
// place: a captive portal, a gateway without its route, a wrong record in the DNS.
func pages(seed uint64, start, end time.Time, slots int) (all []NetworkFault) {
	r := New(seed, 0, "pages")
	for t := start.Add(r.Around(20 * time.Minute)); t.Before(end); t = t.Add(r.Around(30 * time.Minute)) {
		s := NetworkFault{From: t, To: t.Add(r.Between(time.Second, 3*time.Minute)), Slot: r.Below(slots), Fault: trace.Page, Share: 1}
		if r.Chance(0.3) { // the answers of some addresses only
			s.Share = r.share()
		}
		all = append(all, s)
	}
	return all
}

// FaultPlan is what happens to the cluster of a seed.
func FaultPlan(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []PlannedFault) {
	if quiet(seed) != "" {
		return nil
	}
	r, points, nth := New(seed, 0, "deeds"), Points(), int(seed)
	all = append(all, PlannedFault{At: start, What: "arm", Job: points[nth%len(points)]})
	if seed%10 == 4 { // few come to one
		all = append(all, PlannedFault{At: start, What: "arm", Job: "hold-off"})
	}
	p := planner{r, start, end, 0.15, slots, namesOf(jobs), all}
	p.every(7*time.Minute, "arm", func(d *PlannedFault) {
		nth += 11
		d.Job = points[nth%len(points)]
	})
	p.every(10*time.Minute, "arm", func(d *PlannedFault) { d.Job, d.For = Pick(r, points...), r.Between(time.Second, 75*time.Second) })
	p.every(20*time.Minute, "crash", nil)
	p.every(15*time.Minute, "freeze", func(d *PlannedFault) { d.For = r.Between(time.Second, 75*time.Second) })
	p.every(20*time.Minute, "step", func(d *PlannedFault) {
		d.For = r.Between(-30*time.Second, 30*time.Second)
		if r.Chance(0.3) {
			d.For = r.Between(-3*time.Hour, 3*time.Hour)
		}
	})
	p.every(12*time.Minute, "break now", nil)
	p.every(15*time.Minute, "break", nil)
	p.every(90*time.Minute, "delete", nil)
	p.every(8*time.Minute, "run now", nil)
	p.every(10*time.Minute, "step down", nil)
	p.every(15*time.Minute, "restart", nil)
	p.every(35*time.Minute, "deploy", nil)
	p.every(45*time.Minute, "spoil", nil)
	p.every(3*time.Hour, "delete container", nil)
	return p.all
}

// A planner plans what comes at random moments between two times.
type planner struct {
	r          *Roll
	start, end time.Time
	without    float64 // the chance that a seed has none of a kind
	slots      int     // zero: it is about no slot
	names      []string
	all        []PlannedFault
}

// every plans faults at random intervals of mean on average. It calls set for the fields other
// than slot and job.
func (p *planner) every(mean time.Duration, what string, set func(d *PlannedFault)) {
	if p.without > 0 && p.r.Chance(p.without) {
		return
	}
	for t := p.start.Add(p.r.Around(mean)); t.Before(p.end); t = t.Add(p.r.Around(mean)) {
		d := PlannedFault{At: t, What: what}
		if p.slots > 0 {
			d.Slot = p.r.Below(p.slots)
		}
		if d.Job = Pick(p.r, p.names...); set != nil {
			set(&d)
		}
		p.all = append(p.all, d)
	}
}

func namesOf(jobs []trace.Definition) (all []string) {
	for _, d := range jobs {
		all = append(all, d.Name)
	}
	return all
}

// Points are all points at which a simulation crashes a machine: before a
// request is sent, when it is applied and the answer under way, and when the
// answer has come; and where it waits for something else.
func Points() []string {
	all := []string{"running", "hold-off"}
	for _, op := range []string{"read", "create", "acquire", "claim", "settle", "progress", "beat", "save", "load", "renew", "replace", "finish", "release"} {
		for _, when := range []string{" before", " applied", " after"} {
			all = append(all, op+when)
		}
	}
	return all
}

// A NetworkFault is a time in which a share of all requests meets a fault.
type NetworkFault struct {
	From, To time.Time
	Slot     int         // whose; negative: everybody's
	Job      string      // about which; empty: any
	Op       string      // which part of a tick; empty: any
	Fault    trace.Fault // empty: any
	Share    float64
}

// Hits reports whether a request from a slot can meet the fault, or one that belongs to it.
func (s *NetworkFault) Hits(slot int, e *trace.Event) bool {
	return (s.Slot < 0 || s.Slot == slot) && (s.Job == "" || s.Job == e.Job) && (s.Op == "" || s.Op == e.Op) && (s.Fault != trace.ReadOnly || e.Writes()) ||
		e.Then != nil && s.Hits(slot, e.Then)
}

// Combines reports whether the store of a seed takes two steps in one call.
func Combines(seed uint64) bool { return New(seed, 0, "combines").Chance(1. / 3) }

// Stopping is the length of a trap that stops the replica.
const Stopping = -time.Second
