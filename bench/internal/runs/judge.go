package runs

import (
	"math"
	"slices"
	"time"
)

// A Window is the ticks that are judged: those of the jobs from Begin to before End.
type Window struct {
	Jobs       []Job
	Begin, End time.Time
}

// A Report is what the log says about a window.
type Report struct {
	Ticks  int             // that there are in the window, of all jobs
	Runs   int             // that were started for them
	Twice  int             // ticks that were started more than once
	Lost   int             // ticks that were not started
	Delays []time.Duration // from each tick to its first start, the shortest first
	Calm   []time.Duration // the same, of the ticks before the first fault
	Shares map[string]int  // runs by replica
	Faults []Fault         // in their order
}

// A Fault is what the bench has done to a replica, and what followed.
type Fault struct {
	What    string
	Replica string
	Next    time.Duration // until the next run of any job begins; negative: none has begun
	Late    time.Duration // of the first tick after the fault; negative: it has not begun
}

// A key names a tick.
type key struct {
	job  string
	tick int64
}

// Judge looks at the ticks of a window.
func Judge(lines []Line, w Window) Report {
	starts := map[key][]Line{}
	for _, l := range lines {
		if l.What == Start {
			k := key{l.Job, l.Tick.UnixNano()}
			starts[k] = append(starts[k], l)
		}
	}
	r, fault := Report{Shares: map[string]int{}}, firstFault(lines)
	for _, j := range w.Jobs {
		for tick := j.Next(w.Begin.Add(-1)); tick.Before(w.End); tick = tick.Add(j.Every) {
			r.add(tick, starts[key{j.Name, tick.UnixNano()}], tick.Before(fault))
		}
	}
	for _, l := range lines {
		if l.What != Start && l.What != End {
			r.Faults = append(r.Faults, follow(lines, l, w))
		}
	}
	slices.Sort(r.Delays)
	slices.Sort(r.Calm)
	return r
}

// firstFault is when the bench did something to a replica first; zero: it did nothing.
func firstFault(lines []Line) (at time.Time) {
	for _, l := range lines {
		if l.What != Start && l.What != End && (at.IsZero() || l.Wall.Before(at)) {
			at = l.Wall
		}
	}
	return at
}

// add adds a tick and its starts.
func (r *Report) add(tick time.Time, starts []Line, calm bool) {
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
	if calm {
		r.Calm = append(r.Calm, first.Sub(tick))
	}
}

// follow finds what came after a fault.
func follow(lines []Line, fault Line, w Window) Fault {
	f := Fault{What: fault.What, Replica: fault.Replica, Next: -1, Late: -1}
	due := w.Jobs[0].Next(fault.Wall)
	for _, l := range lines {
		if l.What != Start || !l.Wall.After(fault.Wall) {
			continue
		}
		if next := l.Wall.Sub(fault.Wall); f.Next < 0 || next < f.Next {
			f.Next = next
		}
		if late := max(0, l.Wall.Sub(due)); l.Job == w.Jobs[0].Name && l.Tick.Equal(due) && (f.Late < 0 || late < f.Late) {
			f.Late = late
		}
	}
	return f
}

// Share is the largest part of the runs that one replica has had.
func (r Report) Share() float64 {
	most := 0
	for _, n := range r.Shares {
		most = max(most, n)
	}
	return float64(most) / float64(max(1, r.Runs))
}

// Percentile is the delay that so many percent do not exceed; zero if nothing ran.
func (r Report) Percentile(p float64) time.Duration { return Percentile(r.Delays, p) }

// Percentile is that of durations, the shortest first, by the nearest rank.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
