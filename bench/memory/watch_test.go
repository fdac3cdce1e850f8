//go:build linux

package main

import (
	"testing"
	"time"
)

// TestWatch plants runs that are on time, twice and missing, and some that are not measured.
func TestWatch(t *testing.T) {
	begin := time.Now().Add(-2 * time.Second)
	w := newWatch(load{Busy: 2, Period: time.Second, Ticks: 3})
	w.begin, w.end = begin, begin.Add(3*time.Second)
	first := begin.Add(w.Period / 2)
	for _, run := range []struct {
		job  int
		tick time.Time
	}{{0, first}, {1, first}, {1, first}, {0, first.Add(time.Second)}, {1, first.Add(-time.Second)}, {1, first.Add(3 * time.Second)}} {
		w.started(run.job, run.tick)
	}
	w.wrote(first.Add(20 * time.Millisecond))
	w.wrote(first.Add(10 * time.Millisecond))
	w.wrote(first.Add(time.Hour))
	var r result
	w.judge(&r)
	if r.Runs != 3 || r.Twice != 1 || r.Lost != 3 {
		t.Fatalf("got %+v, want 3 runs, 1 twice, 3 lost", r)
	}
	if r.Outcome != 20*time.Millisecond || r.Last < time.Second || r.Median > r.Last {
		t.Errorf("got %+v", r)
	}
}
