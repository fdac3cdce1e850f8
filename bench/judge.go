//go:build linux

package main

import (
	"math"
	"slices"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// A Window is the ticks that are judged: those of the jobs from Begin to before End.
type Window struct {
	Jobs       []replica.Job
	Begin, End time.Time
}

// A Report is what the log says about a window.
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
	What    string
	Replica string
	Next    time.Duration // until the next run of any job begins; negative: none has begun
}

// A tickOf names a tick.
type tickOf struct {
	job  string
	tick int64
}

// judge looks at the ticks of a window.
func judge(lines []replica.Line, w Window) Report {
	starts := map[tickOf][]replica.Line{}
	for _, l := range lines {
		if l.What == replica.Start {
			k := tickOf{l.Job, l.Tick.UnixNano()}
			starts[k] = append(starts[k], l)
		}
	}
	r := Report{Shares: map[string]int{}}
	for _, j := range w.Jobs {
		for tick := j.Next(w.Begin.Add(-1)); tick.Before(w.End); tick = tick.Add(j.Every) {
			r.add(tick, starts[tickOf{j.Name, tick.UnixNano()}])
		}
	}
	for _, l := range lines {
		if l.What != replica.Start && l.What != replica.End {
			r.Faults = append(r.Faults, follow(lines, l))
		}
	}
	slices.Sort(r.Delays)
	return r
}

// add adds a tick and its starts.
func (r *Report) add(tick time.Time, starts []replica.Line) {
	r.Ticks++
	r.Runs += len(starts)
	if len(starts) == 0 {
		r.Lost++
		return
	}
	if len(starts) > 1 {
		r.Twice++
	}
	first := starts[0].Wall
	for _, s := range starts {
		r.Shares[s.Replica]++
		if s.Wall.Before(first) {
			first = s.Wall
		}
	}
	r.Delays = append(r.Delays, first.Sub(tick))
}

// follow finds what came after a fault.
func follow(lines []replica.Line, fault replica.Line) Fault {
	f := Fault{What: fault.What, Replica: fault.Replica, Next: -1}
	for _, l := range lines {
		if next := l.Wall.Sub(fault.Wall); l.What == replica.Start && next > 0 && (f.Next < 0 || next < f.Next) {
			f.Next = next
		}
	}
	return f
}

// judgeLeader looks at who led, where the log has a start and an end for each time that a replica leads: Delays and Faults
// are from each kill to the next start, Lost are the kills that none followed, and Twice are the starts while another
// replica led.
func judgeLeader(lines []replica.Line) Report {
	r := Report{Shares: map[string]int{}}
	for _, l := range lines {
		switch l.What {
		case replica.Start:
			r.Runs++
			r.Shares[l.Replica]++
			if leads(lines, l) {
				r.Twice++
			}
		case replica.Kill:
			f := follow(lines, l)
			r.Ticks++
			r.Faults = append(r.Faults, f)
			if f.Next < 0 {
				r.Lost++
			} else {
				r.Delays = append(r.Delays, f.Next)
			}
		}
	}
	slices.Sort(r.Delays)
	return r
}

// leads reports whether another replica leads when one starts to.
func leads(lines []replica.Line, start replica.Line) bool {
	over := func(of replica.Line) bool {
		return slices.ContainsFunc(lines, func(l replica.Line) bool {
			return l.Pid == of.Pid && (l.What == replica.End || l.What == replica.Kill) && !l.Wall.Before(of.Wall) && !l.Wall.After(start.Wall)
		})
	}
	return slices.ContainsFunc(lines, func(l replica.Line) bool {
		return l.What == replica.Start && l.Pid != start.Pid && l.Wall.Before(start.Wall) && !over(l)
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

// Percentile is the delay that so many percent do not exceed; zero if nothing ran.
func (r Report) Percentile(p float64) time.Duration { return percentile(r.Delays, p) }

// percentile is that of durations, the shortest first, by the nearest rank.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
