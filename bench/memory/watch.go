//go:build linux

package main

import (
	"slices"
	"sync/atomic"
	"time"
)

// A result is what a load took. The delays are after a tick, medians of all ticks.
type result struct {
	Median, Last, Outcome time.Duration // of starts, of the last start, and of the last outcome
	CPU, Wall             time.Duration
	Runs, Twice, Lost     int
	Bytes                 int64 // of all jobs, in the scheduler
}

// A watch notes when jobs start at each tick that is measured. It takes no lock: 10,000 runs that
// start at once would wait for it.
type watch struct {
	period     time.Duration
	begin, end time.Time        // half a period before the first tick, and before the first one that does not count
	late       [][]atomic.Int64 // of the runs, by tick and job, in nanoseconds; zero: it has not started
	written    []atomic.Int64   // when the last record was written after each tick, as late
	twice      atomic.Int64
}

// newWatch returns a watch whose first tick is the second one after the replica has settled.
func newWatch(l load) *watch {
	if l.Busy == 0 {
		begin := time.Now().Add(settle + time.Second)
		return &watch{begin: begin, end: begin.Add(l.Period)}
	}
	first := time.Now().Add(settle + l.Period).Truncate(l.Period).Add(l.Period)
	w := &watch{period: l.Period, begin: first.Add(-l.Period / 2), late: make([][]atomic.Int64, l.Ticks), written: make([]atomic.Int64, l.Ticks)}
	w.end = w.begin.Add(time.Duration(l.Ticks) * l.Period)
	for i := range w.late {
		w.late[i] = make([]atomic.Int64, l.Busy)
	}
	return w
}

// at returns the number of a tick, and whether it counts.
func (w *watch) at(tick time.Time) (n int, ok bool) {
	since := tick.Sub(w.begin)
	if w.period == 0 || since < 0 || !tick.Before(w.end) {
		return 0, false
	}
	return int(since / w.period), true
}

// started notes that a job starts.
func (w *watch) started(job int, tick time.Time) {
	late := max(1, time.Since(tick))
	if n, ok := w.at(tick); ok && !w.late[n][job].CompareAndSwap(0, int64(late)) {
		w.twice.Add(1)
	}
}

// wrote notes that a record was written: after the last run of a tick it is an outcome.
func (w *watch) wrote(now time.Time) {
	n, ok := w.at(now)
	if !ok {
		return
	}
	tick := w.begin.Add(w.period/2 + time.Duration(n)*w.period)
	for late := int64(now.Sub(tick)); ; {
		old := w.written[n].Load()
		if old >= late || w.written[n].CompareAndSwap(old, late) {
			return
		}
	}
}

// judge adds to a result what was noted.
func (w *watch) judge(r *result) {
	r.Twice = int(w.twice.Load())
	var medians, lasts, outcomes []time.Duration
	for n := range w.late {
		var all []time.Duration
		for job := range w.late[n] {
			if late := w.late[n][job].Load(); late > 0 {
				all = append(all, time.Duration(late))
			}
		}
		r.Runs, r.Lost = r.Runs+len(all), r.Lost+len(w.late[n])-len(all)
		if len(all) > 0 {
			medians, lasts = append(medians, middle(all)), append(lasts, slices.Max(all))
			outcomes = append(outcomes, time.Duration(w.written[n].Load()))
		}
	}
	r.Median, r.Last, r.Outcome = middle(medians), middle(lasts), middle(outcomes)
}

// middle is the median of durations in any order; of none it is zero.
func middle(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}
