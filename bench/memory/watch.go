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

// A watch notes when jobs start at each tick that is measured. It takes no lock: 10,000 runs that start at once would wait for it.
type watch struct {
	load
	begin, end time.Time        // half a period before the first tick, and before the first tick that does not count
	late       [][]atomic.Int64 // of the runs, by tick and job, in nanoseconds; zero: it has not started
	written    []atomic.Int64   // when a record was written last after each tick, also in nanoseconds
	twice      atomic.Int64
}

// newWatch returns a watch whose first tick is the second one after the replica has settled.
func newWatch(l load) *watch {
	w := &watch{load: l, begin: time.Now().Add(settle + time.Second), late: make([][]atomic.Int64, l.Ticks), written: make([]atomic.Int64, l.Ticks)}
	if l.Busy > 0 {
		w.begin = time.Now().Add(settle + l.Period).Truncate(l.Period).Add(l.Period / 2)
	}
	w.end = w.begin.Add(time.Duration(max(1, l.Ticks)) * l.Period)
	for i := range w.late {
		w.late[i] = make([]atomic.Int64, l.Busy)
	}
	return w
}

// at returns the number of a tick that counts; false: it does not.
func (w *watch) at(tick time.Time) (n int, ok bool) {
	since := tick.Sub(w.begin)
	return int(since / w.Period), w.Busy > 0 && since >= 0 && tick.Before(w.end)
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
	late := int64(now.Sub(w.begin) - w.Period/2 - time.Duration(n)*w.Period)
	for old := w.written[n].Load(); old < late && !w.written[n].CompareAndSwap(old, late); old = w.written[n].Load() {
	}
}

// judge adds to a result what was noted.
func (w *watch) judge(r *result) {
	r.Twice = int(w.twice.Load())
	var medians, lasts, outcomes []time.Duration
	for n, tick := range w.late {
		var all []time.Duration
		for job := range tick {
			if late := tick[job].Load(); late > 0 {
				all = append(all, time.Duration(late))
			}
		}
		r.Runs, r.Lost = r.Runs+len(all), r.Lost+len(tick)-len(all)
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
