//go:build linux

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

var begin = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

// ran is a run of a second's tick that starts so late.
func ran(job string, tick int, late time.Duration, on string) []replica.Line {
	start := replica.Line{What: replica.Start, Wall: at(tick).Add(late), Tick: at(tick), Job: job, Replica: on, Pid: 7}
	end := start
	end.What, end.Wall = replica.End, start.Wall.Add(ms)
	return []replica.Line{start, end}
}

// good is a log of two jobs in four seconds, without a mistake, and of ticks that do not count.
func good() (lines []replica.Line) {
	lines = append(lines, ran("job-0", -1, 500*ms, "c")...)
	for tick := range 4 {
		lines = append(lines, ran("job-0", tick, time.Duration(tick+1)*ms, "a")...)
		lines = append(lines, ran("job-1", tick, time.Duration(tick+5)*ms, "b")...)
	}
	return append(lines, ran("job-1", 4, 500*ms, "c")...)
}

func window() Window { return Window{replica.Jobs(2, time.Second, 0), begin, at(4)} }

func TestNothingWrong(t *testing.T) {
	r := judge(good(), window())
	if r.Ticks != 8 || r.Runs != 8 || r.Twice != 0 || r.Lost != 0 || r.Share() != 0.5 || !maps.Equal(r.Shares, map[string]int{"a": 4, "b": 4}) {
		t.Errorf("got %+v", r)
	}
	want := []time.Duration{ms, 2 * ms, 3 * ms, 4 * ms, 5 * ms, 6 * ms, 7 * ms, 8 * ms}
	if !slices.Equal(r.Delays, want) {
		t.Errorf("got delays %v, want %v", r.Delays, want)
	}
	for p, want := range map[float64]time.Duration{0: ms, 50: 4 * ms, 51: 5 * ms, 95: 8 * ms, 100: 8 * ms} {
		if got := r.Percentile(p); got != want {
			t.Errorf("percentile %v: got %s, want %s", p, got, want)
		}
	}
}

// TestJudge has one mistake in each log.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		plant func([]replica.Line) []replica.Line
		want  func(Report) bool
	}{
		"a tick twice, on two replicas": {
			func(l []replica.Line) []replica.Line { return append(l, ran("job-0", 2, 900*ms, "b")...) },
			func(r Report) bool { return r.Twice == 1 && r.Lost == 0 && r.Runs == 9 && r.Delays[7] == 8*ms },
		},
		"a tick three times is one tick": {
			func(l []replica.Line) []replica.Line {
				return slices.Concat(l, ran("job-0", 2, 90*ms, "a"), ran("job-0", 2, 91*ms, "a"))
			},
			func(r Report) bool { return r.Twice == 1 && r.Runs == 10 },
		},
		"the second start is told first": {
			func(l []replica.Line) []replica.Line { return append(ran("job-0", 2, 900*ms, "b"), l...) },
			func(r Report) bool { return r.Twice == 1 && r.Delays[7] == 8*ms },
		},
		"a tick lost": {
			func(l []replica.Line) []replica.Line {
				return slices.DeleteFunc(l, func(l replica.Line) bool { return l.Job == "job-1" && l.Tick.Equal(at(3)) })
			},
			func(r Report) bool { return r.Lost == 1 && r.Twice == 0 && r.Runs == 7 && len(r.Delays) == 7 },
		},
		"an end without a start is no run": {
			func(l []replica.Line) []replica.Line {
				return slices.DeleteFunc(l, func(l replica.Line) bool { return l.What == replica.Start && l.Job == "job-0" && l.Tick.Equal(at(0)) })
			},
			func(r Report) bool { return r.Lost == 1 },
		},
		"a late start": {
			func(l []replica.Line) []replica.Line {
				for i := range l {
					if l[i].Job == "job-0" && l[i].Tick.Equal(at(1)) {
						l[i].Wall = l[i].Wall.Add(3 * time.Second)
					}
				}
				return l
			},
			func(r Report) bool { return r.Lost == 0 && r.Delays[7] == 3*time.Second+2*ms },
		},
		"a start before its tick": {
			func(l []replica.Line) []replica.Line {
				l[2].Wall = at(0).Add(-400 * ms)
				return l
			},
			func(r Report) bool { return r.Lost == 0 && r.Delays[0] == -400*ms },
		},
		"runs on one replica alone": {
			func(l []replica.Line) []replica.Line {
				for i := range l {
					l[i].Replica = "a"
				}
				return l
			},
			func(r Report) bool { return r.Share() == 1 },
		},
	} {
		if r := judge(c.plant(good()), window()); !c.want(r) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func TestFaults(t *testing.T) {
	fault := func(what string, wall time.Time) replica.Line {
		return replica.Line{What: what, Wall: wall, Tick: time.Unix(0, 0), Job: "-", Replica: "a", Pid: 7}
	}
	lines := append(good(), fault(replica.Kill, at(1).Add(400*ms)), fault(replica.Term, at(9)))
	want := []Fault{{replica.Kill, "a", 603 * ms}, {replica.Term, "a", -1}}
	if r := judge(lines, window()); !slices.Equal(r.Faults, want) || r.Lost != 0 {
		t.Errorf("got %+v, want %+v", r.Faults, want)
	}
}
