package runs

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var begin = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const ms = time.Millisecond

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

// run is a run of a second's tick that starts so late.
func run(job string, tick int, late time.Duration, replica string) []Line {
	start := Line{Start, at(tick).Add(late), at(tick), job, replica, 7}
	end := start
	end.What, end.Wall = End, start.Wall.Add(ms)
	return []Line{start, end}
}

// good is a log of two jobs in four seconds, without a mistake, and of ticks that do not count.
func good() (lines []Line) {
	lines = append(lines, run("job-0", -1, 500*ms, "c")...)
	for tick := range 4 {
		lines = append(lines, run("job-0", tick, time.Duration(tick+1)*ms, "a")...)
		lines = append(lines, run("job-1", tick, time.Duration(tick+5)*ms, "b")...)
	}
	return append(lines, run("job-1", 4, 500*ms, "c")...)
}

func window() Window { return Window{Jobs(2, time.Second, 0), begin, at(4)} }

func TestNothingWrong(t *testing.T) {
	r := Judge(good(), window())
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

// TestPlanted has one mistake in each log.
func TestPlanted(t *testing.T) {
	for name, c := range map[string]struct {
		plant func([]Line) []Line
		want  func(Report) bool
	}{
		"a tick twice, on two replicas": {
			func(l []Line) []Line { return append(l, run("job-0", 2, 900*ms, "b")...) },
			func(r Report) bool { return r.Twice == 1 && r.Lost == 0 && r.Runs == 9 && r.Delays[7] == 8*ms },
		},
		"a tick three times is one tick": {
			func(l []Line) []Line {
				return slices.Concat(l, run("job-0", 2, 90*ms, "a"), run("job-0", 2, 91*ms, "a"))
			},
			func(r Report) bool { return r.Twice == 1 && r.Runs == 10 },
		},
		"the second start is told first": {
			func(l []Line) []Line { return append(run("job-0", 2, 900*ms, "b"), l...) },
			func(r Report) bool { return r.Twice == 1 && r.Delays[7] == 8*ms },
		},
		"a tick lost": {
			func(l []Line) []Line {
				return slices.DeleteFunc(l, func(l Line) bool { return l.Job == "job-1" && l.Tick.Equal(at(3)) })
			},
			func(r Report) bool { return r.Lost == 1 && r.Twice == 0 && r.Runs == 7 && len(r.Delays) == 7 },
		},
		"an end without a start is no run": {
			func(l []Line) []Line {
				return slices.DeleteFunc(l, func(l Line) bool { return l.What == Start && l.Job == "job-0" && l.Tick.Equal(at(0)) })
			},
			func(r Report) bool { return r.Lost == 1 },
		},
		"a late start": {
			func(l []Line) []Line {
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
			func(l []Line) []Line {
				l[2].Wall = at(0).Add(-400 * ms)
				return l
			},
			func(r Report) bool { return r.Lost == 0 && r.Delays[0] == -400*ms },
		},
		"runs on one replica alone": {
			func(l []Line) []Line {
				for i := range l {
					l[i].Replica = "a"
				}
				return l
			},
			func(r Report) bool { return r.Share() == 1 },
		},
	} {
		if r := Judge(c.plant(good()), window()); !c.want(r) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func TestFaults(t *testing.T) {
	fault := func(what string, wall time.Time) Line { return Line{what, wall, time.Unix(0, 0), "-", "a", 7} }
	lines := append(good(), fault(Kill, at(1).Add(400*ms)), fault(Term, at(9)))
	want := []Fault{{Kill, "a", 603 * ms, 3 * ms}, {Term, "a", -1, -1}}
	if r := Judge(lines, window()); !slices.Equal(r.Faults, want) || r.Lost != 0 {
		t.Errorf("got %+v, want %+v", r.Faults, want)
	}
}

func TestLogIsReadAsItWasWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range good() {
		if err := log.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil || !slices.EqualFunc(got, good(), func(a, b Line) bool { return a.String() == b.String() }) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "start", "start now 0 job a 7"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestTicks(t *testing.T) {
	j := Job{Every: 20 * time.Second, At: 3 * time.Second}
	for now, want := range map[time.Time]time.Time{
		at(3): at(3), at(3).Add(-ms): at(3), at(3).Add(-time.Second): at(-17), at(22): at(3), at(23).Add(ms): at(23),
	} {
		if got := j.Tick(now); !got.Equal(want) {
			t.Errorf("the tick at %s: got %s, want %s", now, got, want)
		}
	}
	if got := j.Next(at(3)); !got.Equal(at(23)) {
		t.Errorf("got %s after a tick", got)
	}
	if got := j.Cron(); got != "3-59/20 * * * * *" {
		t.Errorf("got %s", got)
	}
}
