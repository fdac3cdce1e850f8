package sim

import (
	"github.com/soloist-go/soloist/internal/sim/trace"
	"time"
)

// A plannedFault is what befalls a cluster at some time, or what its operators do to it.
type plannedFault struct {
	at   time.Time
	what string
	slot int
	job  string
	d    time.Duration
}

// networkFaults is what the network of a seed does: a background of single faults, and times in
// which they are many, or the network is cut.
func networkFaults(seed uint64, start, end time.Time, slots int) (all []NetworkFault) {
	r := newRoll(seed, 0, "weather")
	if only := quiet(seed); only == readOnly {
		return []NetworkFault{{From: start, To: end, Slot: r.below(slots), Fault: trace.ReadOnly, Share: 1}}
	} else if only != "" {
		return nil
	}
	if r.chance(0.1) {
		return nil // a fine day
	}
	for t := start.Add(r.around(3 * time.Minute)); t.Before(end); t = t.Add(r.around(6 * time.Minute)) {
		s := NetworkFault{From: t, Slot: r.below(slots), Share: 1}
		d := r.between(time.Second, 90*time.Second)
		switch r.below(9) {
		case 0: // it does not get through
			s.Fault = trace.Drop
		case 1: // it gets through, and nothing comes back
			s.Fault = trace.DropReply
		case 2:
			s.Fault = trace.Refuse
		case 3:
			s.Fault, s.Share = trace.Slow, r.share()
		case 4:
			s.Fault, s.Slot, d = trace.Busy, -1, time.Second+r.around(2*time.Minute)
			s.Share = 0.05 + r.share()*0.95
		case 5:
			s.Fault, s.Share = trace.Late, r.share()
		case 6: // it may read and lease, but not write
			if s.Fault, d = trace.ReadOnly, d+r.around(3*time.Minute); r.chance(0.1) {
				d = end.Sub(t)
			}
		default:
			s.Share = 0.05 + r.share()*0.6
		}
		if r.chance(0.2) {
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
	r := newRoll(seed, 0, "pages")
	for t := start.Add(r.around(20 * time.Minute)); t.Before(end); t = t.Add(r.around(30 * time.Minute)) {
		s := NetworkFault{From: t, To: t.Add(r.between(time.Second, 3*time.Minute)), Slot: r.below(slots), Fault: trace.Page, Share: 1}
		if r.chance(0.3) { // the answers of some addresses only
			s.Share = r.share()
		}
		all = append(all, s)
	}
	return all
}

// faultPlan is what befalls the cluster of a seed.
func faultPlan(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []plannedFault) {
	if quiet(seed) != "" {
		return nil
	}
	r := newRoll(seed, 0, "deeds")
	points := Points()
	nth := int(seed)
	all = append(all, plannedFault{at: start, what: "arm", job: points[nth%len(points)]})
	if seed%10 == 4 { // few come to one
		all = append(all, plannedFault{at: start, what: "arm", job: "hold-off"})
	}
	every := func(mean time.Duration, f func(d plannedFault) plannedFault) {
		if r.chance(0.15) {
			return // not this one, in this seed
		}
		for t := start.Add(r.around(mean)); t.Before(end); t = t.Add(r.around(mean)) {
			all = append(all, f(plannedFault{at: t, slot: r.below(slots), job: jobs[r.below(len(jobs))].Name}))
		}
	}
	kind := func(what string) func(plannedFault) plannedFault {
		return func(d plannedFault) plannedFault { d.what = what; return d }
	}
	every(7*time.Minute, func(d plannedFault) plannedFault {
		nth += 11
		d.what, d.job = "arm", points[nth%len(points)]
		return d
	})
	every(10*time.Minute, func(d plannedFault) plannedFault {
		d.what, d.job, d.d = "arm", points[r.below(len(points))], r.between(time.Second, 75*time.Second)
		return d
	})
	every(20*time.Minute, kind("crash"))
	every(15*time.Minute, func(d plannedFault) plannedFault {
		d.what, d.d = "freeze", r.between(time.Second, 75*time.Second)
		return d
	})
	every(20*time.Minute, func(d plannedFault) plannedFault {
		d.what, d.d = "step", r.between(-30*time.Second, 30*time.Second)
		if r.chance(0.3) {
			d.d = r.between(-3*time.Hour, 3*time.Hour)
		}
		return d
	})
	every(12*time.Minute, kind("break now"))
	every(15*time.Minute, kind("break"))
	every(90*time.Minute, kind("delete"))
	every(8*time.Minute, kind("run now"))
	every(10*time.Minute, kind("step down"))
	every(15*time.Minute, kind("restart"))
	every(35*time.Minute, kind("deploy"))
	every(45*time.Minute, kind("spoil"))
	every(3*time.Hour, kind("delete container"))
	return all
}
