//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

var (
	noon      = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	intervals = map[string]time.Duration{"s5": 5 * time.Second, "s10": 10 * time.Second, "s20": 20 * time.Second}
	again2    = map[string]bool{"rerun": true, pages: true}
)

// at is a time by its seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// A teller makes up a story.
type teller struct{ Story }

func (t *teller) write(seconds float64, replica, lease string, r store.Record, news ...store.Outcome) {
	t.Writes = append(t.Writes, Write{At: at(seconds), Replica: replica, Lease: lease, Record: r, News: news})
}

func (t *teller) tell(seconds float64, what What, replica, job string, tick time.Time, attempt int, token int64) *Effect {
	e := Effect{What: what, Replica: replica, Job: job, Tick: tick, Attempt: attempt, Try: 1, Token: token, Got: at(seconds)}
	if !what.note() {
		e.Asked = at(seconds)
	}
	t.Effects = append(t.Effects, e)
	return &t.Effects[len(t.Effects)-1]
}

func record(job, spec string, token int64, through, tick time.Time, attempt int, status store.Status) store.Record {
	return store.Record{Job: job, Definition: store.Definition{Spec: spec}, Token: token, Watermark: through,
		Run: store.Run{Tick: tick, Attempt: attempt, Status: status}}
}

// good is a story in which all is as it has to be: a runs five at 5; b dies at
// 10, which a settles at 30. Rerun's runner dies too, and its tick is run again.
func good() *teller {
	const five, rerun, ok, runs = "five", "rerun", store.Succeeded, store.Running
	t := &teller{}
	t.Faults = []Fault{{Kind: sigkill, Replica: "b", Begin: at(11), End: at(12)}}
	t.Exits = []Exit{
		{Replica: "b", Start: at(0), Listened: true, At: at(11), Asked: sigkill, Code: -1},
		{Replica: "c", Start: at(0), Listened: true, At: at(50), Asked: sigterm},
		{Replica: "b", Start: at(60), At: at(60.1), Asked: sigterm, Code: -1},
	}
	t.write(0, "a", "", record(five, "s5", 1, at(0), time.Time{}, 0, store.Idle))
	t.write(5, "a", "A", record(five, "s5", 2, at(0), at(5), 1, runs))
	t.tell(5.1, Started, "a", five, at(5), 1, 2)
	t.tell(5.5, Done, "a", five, at(5), 1, 2)
	t.tell(5.6, Ended, "a", five, at(5), 1, 2)
	t.write(6, "a", "A", record(five, "s5", 2, at(5), at(5), 1, ok), store.Outcome{Tick: at(5), Status: ok, Token: 2})
	t.write(10, "b", "B", record(five, "s5", 3, at(5), at(10), 1, runs))
	t.tell(10.1, Started, "b", five, at(10), 1, 3)
	t.write(30, "a", "C", record(five, "s5", 4, at(25), at(30), 1, runs),
		store.Outcome{From: at(10), Tick: at(25), Count: 3, Status: store.Missed},
		store.Outcome{Tick: at(10), Status: store.Abandoned, Token: 3})
	t.tell(30.1, Started, "a", five, at(30), 1, 4)
	t.tell(30.5, Done, "a", five, at(30), 1, 4)
	t.write(31, "a", "C", record(five, "s5", 4, at(30), at(30), 1, ok), store.Outcome{Tick: at(30), Status: ok, Token: 4})
	// The schedule changes.
	t.write(32, "c", "D", record(five, "s10", 4, at(32), at(30), 1, ok), store.Outcome{From: at(30), Tick: at(32), Status: store.Missed})
	t.write(40, "c", "E", record(five, "s10", 5, at(32), at(40), 1, runs))
	t.tell(40.1, Started, "c", five, at(40), 1, 5)

	t.write(0, "a", "", record(rerun, "s20", 1, at(0), time.Time{}, 0, store.Idle))
	t.write(20, "a", "F", record(rerun, "s20", 2, at(0), at(20), 1, runs))
	t.tell(20.1, Started, "a", rerun, at(20), 1, 2)
	t.tell(22, Done, "a", rerun, at(20), 1, 2)
	t.write(36, "c", "G", record(rerun, "s20", 3, at(0), at(20), 2, runs))
	t.tell(36.1, Started, "c", rerun, at(20), 2, 3)
	t.tell(36.2, Beat, "a", rerun, at(20), 1, 2).Stale = true
	t.Effects[len(t.Effects)-1].Asked = at(22)
	t.tell(38, Done, "c", rerun, at(20), 2, 3)
	t.write(39, "c", "G", record(rerun, "s20", 3, at(20), at(20), 2, ok), store.Outcome{Tick: at(20), Status: ok, Token: 3})

	t.write(0, "a", "", record(pages, "s20", 1, at(0), time.Time{}, 0, store.Idle))
	t.write(20, "a", "H", record(pages, "s20", 2, at(0), at(20), 1, runs))
	t.tell(20.1, Started, "a", pages, at(20), 1, 2)
	t.tell(21, Saved, "a", pages, at(20), 1, 2).Position = 1
	t.write(40, "b", "I", record(pages, "s20", 3, at(20), at(40), 1, runs), store.Outcome{Tick: at(20), Status: store.Abandoned, Token: 2})
	t.tell(40.1, Started, "b", pages, at(40), 1, 3)
	t.tell(40.2, Loaded, "b", pages, at(40), 1, 3).Position = 1
	// b is stopped, and c too, before its run begins.
	t.write(45, "b", "I", record(pages, "s20", 3, at(40), at(40), 1, ok), store.Outcome{Tick: at(40), Status: ok, Token: 3})
	t.write(60, "c", "L", record(pages, "s20", 4, at(40), at(60), 1, runs))
	t.write(60.1, "c", "L", record(pages, "s20", 4, at(40), at(40), 1, ok))
	t.write(61, "b", "M", record(pages, "s20", 5, at(40), at(60), 1, runs))
	t.tell(61.1, Started, "b", pages, at(60), 1, 5)

	t.write(0, "a", "", record(leader, "one", 1, at(0), time.Time{}, 0, store.Idle))
	t.write(1, "b", "J", record(leader, "one", 2, at(0), time.Time{}, 1, runs))
	t.tell(1.1, Started, "b", leader, time.Time{}, 1, 2)
	t.tell(10.9, Beat, "b", leader, time.Time{}, 1, 2)
	t.write(26, "c", "K", record(leader, "one", 3, at(0), time.Time{}, 1, runs), store.Outcome{Status: store.Abandoned, Token: 2})
	t.tell(26.1, Started, "c", leader, time.Time{}, 1, 3)
	return t
}

// find returns the nth effect that is so.
func (t *teller) find(what What, job string, n int) *Effect {
	for i := range t.Effects {
		if e := &t.Effects[i]; e.What == what && e.Job == job {
			if n--; n < 0 {
				return e
			}
		}
	}
	panic("no such effect")
}

// writeOf returns the nth write of a job.
func (t *teller) writeOf(job string, n int) *Write {
	for i := range t.Writes {
		if w := &t.Writes[i]; w.Record.Job == job {
			if n--; n < 0 {
				return w
			}
		}
	}
	panic("no such write")
}

func TestGoodStory(t *testing.T) {
	if bad := violations(good().Story, intervals, again2); len(bad) > 0 {
		t.Errorf("violations of what is well:\n%s", strings.Join(bad, "\n"))
	}
}

// TestViolations plants one mistake each.
func TestViolations(t *testing.T) {
	five := "five@12:00:05 attempt 1 try 1 token 2 on a"
	for want, plant := range map[string]func(*teller){
		"0 faults": func(t *teller) { t.Faults = nil },
		"a run that was done: false": func(t *teller) {
			t.Effects = slices.DeleteFunc(t.Effects, func(e Effect) bool { return e.What == Done })
		},

		// Duplicates.
		"c is start 2 of its tick": func(t *teller) {
			t.write(41, "c", "X", record("five", "s10", 6, at(32), at(5), 1, store.Running))
			t.tell(41, Started, "c", "five", at(5), 1, 6)
		},
		five + " started twice": func(t *teller) { t.tell(5.2, Started, "a", "five", at(5), 1, 2) },
		"rerun@12:00:20 attempt 6 try 1 token 7 on c is start 6": func(t *teller) {
			for n := 3; n <= 6; n++ {
				t.tell(38.1, Started, "c", "rerun", at(20), n, int64(n+1))
			}
		},
		"five@12:00:05 attempt 1 try 1 token 4 on a succeeded, as had " + five: func(t *teller) {
			t.find(Done, "five", 1).Tick = at(5)
		},
		"its tick had succeeded at 12:00:39": func(t *teller) {
			t.write(60, "a", "X", record("rerun", "s20", 4, at(20), at(20), 3, store.Running))
			t.tell(60, Started, "a", "rerun", at(20), 3, 4)
		},
		"token 9 on c started, and has not claimed that":                                 func(t *teller) { t.tell(41, Started, "c", "five", at(45), 1, 9) },
		five + " started, and has not claimed that":                                      func(t *teller) { t.writeOf("five", 1).At = at(5.2) },
		"the claim with token 4 was taken back at 12:01:00.100, and its run had begun":   func(t *teller) { t.tell(60.05, Started, "c", pages, at(60), 1, 4) },
		"claimed by a at 12:00:20.000 and by b":                                          func(t *teller) { t.Writes = append(t.Writes, claimAgain) },
		"attempt 2: claimed by c at 12:00:36.000, and attempt 1 is not the claim before": func(t *teller) { t.writeOf("rerun", 1).Record.Run.Attempt = 3 },

		// Ticks without an outcome, or with two.
		"1 ticks between 12:00:05.000 and 12:00:15.000 have no fate": func(t *teller) {
			w := t.writeOf("five", 4)
			w.News = []store.Outcome{{From: at(15), Tick: at(25), Count: 2, Status: store.Missed}, {Tick: at(15), Status: store.Missed}}
		},
		"counts 2 ticks of 3":             func(t *teller) { t.writeOf("five", 4).News[0].Count = 2 },
		"does not begin at the watermark": func(t *teller) { t.writeOf("five", 4).News[0].From = at(15) },
		"five@12:00:05.000: succeeded by a, and it had its fate": func(t *teller) {
			t.writeOf("five", 5).News = append(t.writeOf("five", 5).News, store.Outcome{Tick: at(5), Status: store.Succeeded})
		},
		"the watermark is at 12:00:05.000, and the outcomes end at 12:00:00.000": func(t *teller) { t.writeOf("five", 2).News = nil },
		"moves the watermark back from 12:00:25.000 to 12:00:20.000":             func(t *teller) { t.writeOf("five", 5).Record.Watermark = at(20) },
		"nobody has made the entry":                                              func(t *teller) { t.writeOf("rerun", 0).Lease = "A" },
		"a spec that no version has":                                             func(t *teller) { t.writeOf("five", 6).Record.Definition.Spec = "s7" },
		"five: the tick 12:01:00.000 has no fate":                                func(t *teller) { t.Unwell = []string{"five: the tick 12:01:00.000 has no fate"} },

		// Stale writes.
		"token 2 on a: beat was accepted after rerun": func(t *teller) { t.find(Beat, "rerun", 0).Stale = false },
		"a write of a with token 2 was accepted at 12:00:50.000 after 3": func(t *teller) {
			t.write(50, "a", "F", record("rerun", "s20", 2, at(20), at(20), 1, store.Succeeded))
		},
		"a write of a for token 3 was accepted at 12:00:39.000, under another lease than the claim of c": func(t *teller) {
			w := t.writeOf("rerun", 3)
			w.Replica, w.Lease = "a", "F"
		},

		// Beliefs.
		"rerun@12:00:20 attempt 1 try 1 token 2 on a believed in its lease at 12:00:36.150, and c had claimed token 3 at 12:00:36.000": func(t *teller) {
			t.find(Beat, "rerun", 0).Asked = at(36.15)
		},
		"leader token 2 on b believed in its lease at 12:00:26.050": func(t *teller) { t.find(Beat, leader, 0).Asked = at(26.05) },

		"loaded position 0, and pages@12:00:20 attempt 1 try 1 token 2 on a had saved 1": func(t *teller) { t.find(Loaded, pages, 0).Position = 0 },

		// Processes.
		"c, started at 12:00:00.000, did not stop within":                func(t *teller) { t.Exits[1].Asked = tooLong },
		"c, started at 12:00:00.000, ended at 12:00:50.000 with code 0":  func(t *teller) { t.Exits[1].Asked = "" },
		"c, started at 12:00:00.000, ended at 12:00:50.000 with code 2":  func(t *teller) { t.Exits[1].Code = 2 },
		"b, started at 12:00:00.000, ended at 12:00:11.000 with code 2":  func(t *teller) { t.Exits[0].Code = 2 },
		"c, started at 12:00:00.000, ended at 12:00:50.000 with code -1": func(t *teller) { t.Exits[1].Code = -1 },
		"as if a run ignored its context, and none did":                  func(t *teller) { t.Exits[1].Code = exitOverrun },
		"c: /healthz answers 503":                                        func(t *teller) { t.Unwell = []string{"c: /healthz answers 503"} },
	} {
		t.Run(want, func(t *testing.T) {
			s := good()
			plant(s)
			bad := strings.Join(violations(s.Story, intervals, again2), "\n")
			if !strings.Contains(bad, want) {
				t.Errorf("got %q", bad)
			}
		})
	}
}

var claimAgain = Write{At: at(60), Replica: "b", Lease: "X", Record: record("rerun", "s20", 4, at(20), at(20), 1, store.Running)}

// TestExcused: a run that said so, or a process that was frozen, may end it.
func TestExcused(t *testing.T) {
	for name, plant := range map[string]func(*teller){
		"blocks": func(t *teller) { t.tell(45, Blocks, "c", "five", at(40), 1, 5) },
		"frozen": func(t *teller) { t.Exits[1].Thawed = at(49) },
	} {
		s := good()
		s.Exits[1].Code = exitOverrun
		plant(s)
		if bad := violations(s.Story, intervals, again2); len(bad) > 0 {
			t.Errorf("%s: %q", name, bad)
		}
	}
}

func TestReport(t *testing.T) {
	var b strings.Builder
	report(&b, good().Story)
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"kill -9 1 1s",                         // a fault
		"SIGTERM, code 0 1",                    // a process
		"five 2 0 0 1 0 3",                     // outcomes
		"rerun 4 1 0 0 1 0",                    // effects
		"killed 0 0 0 0 1 0 0 0 0 15.1s 15.1s", // time without a leader
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}
