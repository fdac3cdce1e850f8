//go:build linux

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/proctest"
)

var begin = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

// ran is a run of a second's tick that starts so late.
func ran(job string, tick int, late time.Duration, on string) []proctest.Event {
	start := proctest.Event{What: replica.Start, At: at(tick).Add(late), Tick: at(tick), Job: job, Replica: on}
	end := start
	end.What, end.At = replica.End, start.At.Add(ms)
	return []proctest.Event{start, end}
}

// good is a log of two jobs in four seconds, without a mistake, and of ticks that do not count.
func good() (lines []proctest.Event) {
	lines = append(lines, ran("job-0", -1, 500*ms, "c")...)
	for tick := range 4 {
		lines = append(lines, ran("job-0", tick, time.Duration(tick+1)*ms, "a")...)
		lines = append(lines, ran("job-1", tick, time.Duration(tick+5)*ms, "b")...)
	}
	return append(lines, ran("job-1", 4, 500*ms, "c")...)
}

func window() Window { return Window{replica.Jobs(2, time.Second, 0), begin, at(4)} }

func TestNothingWrong(t *testing.T) {
	r := judge(good(), nil, window())
	if r.Ticks != 8 || r.Runs != 8 || r.Twice != 0 || r.Lost != 0 || r.Share() != 0.5 || !maps.Equal(r.Shares, map[string]int{"a": 4, "b": 4}) {
		t.Errorf("got %+v", r)
	}
	want := []time.Duration{ms, 2 * ms, 3 * ms, 4 * ms, 5 * ms, 6 * ms, 7 * ms, 8 * ms}
	if !slices.Equal(r.Delays, want) {
		t.Errorf("got delays %v, want %v", r.Delays, want)
	}
	for p, want := range map[float64]time.Duration{0: ms, 50: 4 * ms, 51: 5 * ms, 95: 8 * ms, 100: 8 * ms} {
		if got := percentile(r.Delays, p); got != want {
			t.Errorf("percentile %v: got %s, want %s", p, got, want)
		}
	}
}

// TestJudge has one mistake in each log.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		plant func([]proctest.Event) []proctest.Event
		want  func(Report) bool
	}{
		"a tick twice, on two replicas": {
			func(l []proctest.Event) []proctest.Event { return append(l, ran("job-0", 2, 900*ms, "b")...) },
			func(r Report) bool { return r.Twice == 1 && r.Lost == 0 && r.Runs == 9 && r.Delays[7] == 8*ms },
		},
		"a tick three times is one tick": {
			func(l []proctest.Event) []proctest.Event {
				return slices.Concat(l, ran("job-0", 2, 90*ms, "a"), ran("job-0", 2, 91*ms, "a"))
			},
			func(r Report) bool { return r.Twice == 1 && r.Runs == 10 },
		},
		"the second start is told first": {
			func(l []proctest.Event) []proctest.Event { return append(ran("job-0", 2, 900*ms, "b"), l...) },
			func(r Report) bool { return r.Twice == 1 && r.Delays[7] == 8*ms },
		},
		"a tick lost": {
			func(l []proctest.Event) []proctest.Event {
				return slices.DeleteFunc(l, func(l proctest.Event) bool { return l.Job == "job-1" && l.Tick.Equal(at(3)) })
			},
			func(r Report) bool { return r.Lost == 1 && r.Twice == 0 && r.Runs == 7 && len(r.Delays) == 7 },
		},
		"a late start": {
			func(l []proctest.Event) []proctest.Event {
				for i := range l {
					if l[i].Job == "job-0" && l[i].Tick.Equal(at(1)) {
						l[i].At = l[i].At.Add(3 * time.Second)
					}
				}
				return l
			},
			func(r Report) bool { return r.Lost == 0 && r.Delays[7] == 3*time.Second+2*ms },
		},
		"a start before its tick": {
			func(l []proctest.Event) []proctest.Event {
				l[2].At = at(0).Add(-400 * ms)
				return l
			},
			func(r Report) bool { return r.Lost == 0 && r.Delays[0] == -400*ms },
		},
	} {
		if r := judge(c.plant(good()), nil, window()); !c.want(r) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func TestFaults(t *testing.T) {
	faults := []proctest.Event{{What: "kill", At: at(1).Add(400 * ms), Replica: "a"}, {What: "term", At: at(9), Replica: "a"}}
	want := []Fault{{"kill", 603 * ms}, {"term", -1}}
	if r := judge(good(), faults, window()); !slices.Equal(r.Faults, want) || r.Lost != 0 {
		t.Errorf("got %+v, want %+v", r.Faults, want)
	}
}

// TestLeaders has one mistake in each log.
func TestLeaders(t *testing.T) {
	event := func(what string, second int, on string) proctest.Event {
		return proctest.Event{What: what, At: at(second), Job: "job-0", Replica: on}
	}
	good := []proctest.Event{event("start", 0, "a"), event("start", 13, "b"), event("start", 22, "c"), event("end", 30, "c")}
	kills := []proctest.Event{event("kill", 10, "a"), event("kill", 20, "b")}
	both := []time.Duration{2 * time.Second, 3 * time.Second}
	for name, c := range map[string]struct {
		events               []proctest.Event
		twice, lost, changes int
		delays               []time.Duration
	}{
		"nothing wrong":          {good, 0, 0, 0, both},
		"two lead":               {append(slices.Clone(good), event("start", 15, "c")), 1, 0, 1, both},
		"nobody follows":         {good[:2], 0, 1, 0, both[1:]},
		"a change for no reason": {append(slices.Clone(good), event("start", 31, "a")), 0, 0, 1, both},
	} {
		r := judgeLeader(c.events, kills)
		if r.Twice != c.twice || r.Lost != c.lost || r.Changes() != c.changes || !slices.Equal(r.Delays, c.delays) {
			t.Errorf("%s: got %+v, %d changes", name, r, r.Changes())
		}
	}
}
