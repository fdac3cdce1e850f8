//go:build linux

package main

import (
	"slices"
	"sync/atomic"
	"time"
)

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
		return &watch{begin: begin, end: begin.Add(l.Quiet)}
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
	for n := range w.late {
		var all []time.Duration
		for job := range w.late[n] {
			if late := w.late[n][job].Load(); late > 0 {
				all = append(all, time.Duration(late))
			}
		}
		slices.Sort(all)
		r.Runs, r.Lost = r.Runs+len(all), r.Lost+len(w.late[n])-len(all)
		if len(all) > 0 {
			r.Late = append(r.Late, delay{Median: all[len(all)/2], First: all[0], Last: all[len(all)-1], Outcome: time.Duration(w.written[n].Load())})
		}
	}
}
