//go:build linux

package main

import (
	"math"
	"slices"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A Window is the ticks that are judged: the ticks of the jobs from Begin to before End.
type Window struct {
	Jobs       []replica.Job
	Begin, End time.Time
}

// A Report is what the events say about a window.
type Report struct {
	Ticks  int             // that there are in the window, of all jobs
	Runs   int             // that were started for them
	Twice  int             // ticks that were started more than once
	Lost   int             // ticks that were not started
	Delays []time.Duration // from each tick to its first start, the shortest first
	Shares map[string]int  // runs by replica
	Faults []Fault         // in their order
}

// A Fault is what the bench has done to a replica, and what followed.
type Fault struct {
	What string
	Next time.Duration // until the next run of any job begins; negative: none has begun
}

// A tickOf names a tick.
type tickOf struct {
	job  string
	tick int64
}

// judge looks at the ticks of a window, and at the faults in it.
func judge(events, faults []proctest.Event, w Window) Report {
	starts := map[tickOf][]proctest.Event{}
	for _, e := range events {
		if e.What == replica.Start {
			k := tickOf{e.Job, e.Tick.UnixNano()}
			starts[k] = append(starts[k], e)
		}
	}
	r := Report{Shares: map[string]int{}}
	for _, j := range w.Jobs {
		for tick := j.Next(w.Begin.Add(-1)); tick.Before(w.End); tick = tick.Add(j.Every) {
			r.add(tick, starts[tickOf{j.Name, tick.UnixNano()}])
		}
	}
	for _, f := range faults {
		r.Faults = append(r.Faults, follow(events, f))
	}
	slices.Sort(r.Delays)
	return r
}

// add adds a tick and its starts.
func (r *Report) add(tick time.Time, starts []proctest.Event) {
	r.Ticks++
	r.Runs += len(starts)
	if len(starts) == 0 {
		r.Lost++
		return
	}
	if len(starts) > 1 {
		r.Twice++
	}
	first := starts[0].At
	for _, s := range starts {
		r.Shares[s.Replica]++
		if s.At.Before(first) {
			first = s.At
		}
	}
	r.Delays = append(r.Delays, first.Sub(tick))
}

// follow finds what came after a fault.
func follow(events []proctest.Event, fault proctest.Event) Fault {
	f := Fault{What: fault.What, Next: -1}
	for _, e := range events {
		if next := e.At.Sub(fault.At); e.What == replica.Start && next > 0 && (f.Next < 0 || next < f.Next) {
			f.Next = next
		}
	}
	return f
}

// judgeLeader looks at who led, where there is a start and an end for each time that a replica leads: Delays and Faults are from
// each kill to the next start, Lost are the kills that none followed, and Twice are the starts while another replica led.
func judgeLeader(events, kills []proctest.Event) Report {
	r := Report{Shares: map[string]int{}}
	for _, e := range events {
		if e.What == replica.Start {
			r.Runs++
			if r.Shares[e.Replica]++; leads(slices.Concat(events, kills), e) {
				r.Twice++
			}
		}
	}
	for _, k := range kills {
		f := follow(events, k)
		r.Ticks++
		if r.Faults = append(r.Faults, f); f.Next < 0 {
			r.Lost++
		} else {
			r.Delays = append(r.Delays, f.Next)
		}
	}
	slices.Sort(r.Delays)
	return r
}

// leads reports whether another replica leads when one starts to: what has begun was not followed by its end or a kill.
func leads(events []proctest.Event, start proctest.Event) bool {
	return slices.ContainsFunc(events, func(b proctest.Event) bool {
		return b.What == replica.Start && b.Replica != start.Replica && b.At.Before(start.At) && !slices.ContainsFunc(events, func(e proctest.Event) bool {
			return e.Replica == b.Replica && (e.What == replica.End || e.What == "kill") && !e.At.Before(b.At) && !e.At.After(start.At)
		})
	})
}

// Changes is how often the leader changed without a kill.
func (r Report) Changes() int { return max(0, r.Runs-1-len(r.Faults)) }

// Share is the largest part of the runs that one replica has had.
func (r Report) Share() float64 {
	most := 0
	for _, n := range r.Shares {
		most = max(most, n)
	}
	return float64(most) / float64(max(1, r.Runs))
}

// percentile is a percentile of durations, sorted from the shortest, by the nearest rank; zero if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
