//go:build unix

package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// versionsOf are those of the specs of the story, by job.
var versionsOf = map[string]string{"five s": "1", "ten s10": "1", "ten s15": "2", "rerun s": "1", "pages s": "1"}

// at is a time by its seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// A maker makes up a story.
type maker struct {
	Story
	history map[string][]event.Outcome
}

// write adds a write, and what acquires its lease just before the first one under it; an outcome is followed by its release.
func (m *maker) write(seconds float64, op, replica, lease string, r record.Record, news ...event.Outcome) {
	add := func(e trace.Event) {
		e.What, e.Replica, e.Job, e.Lease, e.Status, e.Match = trace.Request, replica, r.Job, lease, http.StatusOK, true
		m.Requests = append(m.Requests, &e)
	}
	if lease != "" && !slices.ContainsFunc(m.Requests, func(q *trace.Event) bool { return q.Lease == lease }) {
		add(trace.Event{Op: "acquire", Time: at(seconds - 0.01), Span: 15 * time.Second})
	}
	m.history[r.Job] = slices.Concat(news, m.history[r.Job])
	r.History, r.Run.Replica = m.history[r.Job], replica
	add(trace.Event{Op: op, Time: at(seconds), Record: &r})
	if op == "finish" || op == "take back" {
		add(trace.Event{Op: "release", Time: at(seconds + 0.01)})
	}
}

func (m *maker) tell(seconds float64, what What, replica, job string, tick time.Time, attempt int, token int64) *Effect {
	e := Effect{What: what, Replica: replica, Job: job, Tick: tick, Attempt: attempt, Try: 1, Token: token, Got: at(seconds)}
	if !what.note() {
		e.Asked = at(seconds)
	}
	m.Effects = append(m.Effects, e)
	return &m.Effects[len(m.Effects)-1]
}

func written(job, spec string, token int64, through, tick time.Time, attempt int, status event.Status) record.Record {
	return record.Record{Job: job, Definition: record.Definition{Spec: spec}, Token: token, Watermark: through,
		Run: record.Run{Tick: tick, Attempt: attempt, Status: status, Claimed: tick}}
}

// good is a story in which all is as it has to be. Job five runs on a at 5; b dies at 10, which a settles at 30. The schedule of
// ten changes. Rerun's runner dies, and its tick is run again. A run of pages goes on where the last one was, and c takes a claim back.
func good() *maker {
	const five, rerun, ok, runs = "five", "rerun", event.Succeeded, event.Running
	m := &maker{history: map[string][]event.Outcome{}}
	m.Faults = []Fault{{Kind: sigkill, Replica: "b", Begin: at(11), End: at(12)}}
	m.Exits = []Exit{
		{Replica: "b", Start: at(0), Listened: true, At: at(11), Asked: sigkill, Code: -1},
		{Replica: "c", Start: at(0), Listened: true, At: at(50), Asked: sigterm},
		{Replica: "b", Start: at(60), At: at(60.1), Asked: sigterm, Code: -1},
	}
	var none time.Time
	m.write(0, "create", "a", "", written(five, "s", 1, at(0), none, 0, record.Idle))
	m.write(5, "claim", "a", "A", written(five, "s", 2, at(0), at(5), 1, runs))
	m.tell(5.1, Started, "a", five, at(5), 1, 2)
	m.tell(5.5, Done, "a", five, at(5), 1, 2)
	m.tell(5.6, Ended, "a", five, at(5), 1, 2)
	m.write(6, "finish", "a", "A", written(five, "s", 2, at(5), at(5), 1, ok), event.Outcome{Tick: at(5), Status: ok, Token: 2})
	m.write(10, "claim", "b", "B", written(five, "s", 3, at(5), at(10), 1, runs))
	m.tell(10.1, Started, "b", five, at(10), 1, 3).Previous = at(5)
	m.write(30, "claim", "a", "C", written(five, "s", 4, at(25), at(30), 1, runs),
		event.Outcome{From: at(10), Tick: at(25), Count: 3, Status: event.Missed}, event.Outcome{Tick: at(10), Status: event.Abandoned, Token: 3})
	m.tell(30.1, Started, "a", five, at(30), 1, 4).Previous = at(5)
	m.tell(30.5, Done, "a", five, at(30), 1, 4)
	m.tell(30.6, Ended, "a", five, at(30), 1, 4)
	m.write(31, "finish", "a", "C", written(five, "s", 4, at(30), at(30), 1, ok), event.Outcome{Tick: at(30), Status: ok, Token: 4})

	m.write(0, "create", "a", "", written("ten", "s10", 1, at(0), none, 0, record.Idle))
	m.write(12, "settle", "c", "D", written("ten", "s15", 1, at(12), none, 0, record.Idle), event.Outcome{From: at(0), Tick: at(12), Status: event.Missed})
	m.write(15, "claim", "c", "D", written("ten", "s15", 2, at(12), at(15), 1, runs))
	m.tell(15.1, Started, "c", "ten", at(15), 1, 2)

	m.write(0, "create", "a", "", written(rerun, "s", 1, at(0), none, 0, record.Idle))
	m.write(20, "claim", "a", "F", written(rerun, "s", 2, at(0), at(20), 1, runs))
	m.tell(20.1, Started, "a", rerun, at(20), 1, 2)
	m.tell(22, Done, "a", rerun, at(20), 1, 2)
	m.write(36, "claim", "c", "G", written(rerun, "s", 3, at(0), at(20), 2, runs))
	m.tell(36.1, Started, "c", rerun, at(20), 2, 3)
	m.tell(36.2, Blind, "a", rerun, at(20), 1, 2).Stale = true
	m.Effects[len(m.Effects)-1].Asked = none
	m.tell(38, Done, "c", rerun, at(20), 2, 3)
	m.tell(38.1, Ended, "c", rerun, at(20), 2, 3)
	m.write(39, "finish", "c", "G", written(rerun, "s", 3, at(20), at(20), 2, ok), event.Outcome{Tick: at(20), Status: ok, Token: 3})

	m.write(0, "create", "a", "", written(pages, "s", 1, at(0), none, 0, record.Idle))
	m.write(10, "claim", "a", "H", written(pages, "s", 2, at(0), at(10), 1, runs))
	m.tell(10.1, Started, "a", pages, at(10), 1, 2)
	m.write(11, "save", "a", "H", written(pages, "s", 2, at(0), at(10), 1, runs))
	m.Requests[len(m.Requests)-1].Note = "1"
	m.write(30, "claim", "b", "I", written(pages, "s", 3, at(0), at(10), 2, runs))
	m.tell(30.1, Started, "b", pages, at(10), 2, 3)
	m.tell(30.2, Loaded, "b", pages, at(10), 2, 3).Position = 1
	m.tell(31, Done, "b", pages, at(10), 2, 3)
	m.tell(31.1, Ended, "b", pages, at(10), 2, 3)
	m.write(32, "finish", "b", "I", written(pages, "s", 3, at(10), at(10), 2, ok), event.Outcome{Tick: at(10), Status: ok, Token: 3})
	m.write(60, "claim", "c", "L", written(pages, "s", 4, at(50), at(60), 1, runs), event.Outcome{From: at(10), Tick: at(50), Count: 4, Status: event.Missed})
	m.write(60.1, "take back", "c", "L", written(pages, "s", 4, at(50), at(10), 2, ok))
	m.write(61, "claim", "b", "M", written(pages, "s", 5, at(50), at(60), 1, runs))
	m.tell(61.1, Started, "b", pages, at(60), 1, 5).Previous = at(10)

	m.write(0, "create", "a", "", written(leader, "one", 1, at(0), none, 0, record.Idle))
	m.write(1, "claim", "b", "J", written(leader, "one", 2, at(0), none, 1, runs))
	m.tell(1.1, Started, "b", leader, none, 1, 2)
	m.tell(10.9, Beat, "b", leader, none, 1, 2)
	m.write(26, "claim", "c", "K", written(leader, "one", 3, at(0), none, 1, runs), event.Outcome{Status: event.Abandoned, Token: 2})
	m.tell(26.1, Started, "c", leader, none, 1, 3)
	return m
}

// find returns the nth effect that is so.
func (m *maker) find(what What, job string, n int) *Effect {
	for i := range m.Effects {
		if e := &m.Effects[i]; e.What == what && e.Job == job {
			if n--; n < 0 {
				return e
			}
		}
	}
	panic("no such effect")
}

// writeOf returns the nth write of a job.
func (m *maker) writeOf(job string, n int) *trace.Event {
	for _, q := range m.Requests {
		if q.Record != nil && q.Job == job {
			if n--; n < 0 {
				return q
			}
		}
	}
	panic("no such write")
}

// acquisition returns what acquires a lease.
func (m *maker) acquisition(lease string) *trace.Event {
	return m.Requests[slices.IndexFunc(m.Requests, func(q *trace.Event) bool { return q.Op == "acquire" && q.Lease == lease })]
}

func TestGoodStory(t *testing.T) {
	if bad := violations(good().Story, versionsOf); len(bad) > 0 {
		t.Errorf("violations of what is well:\n%s", strings.Join(bad, "\n"))
	}
}

// TestViolations plants one mistake each. Those that the judge of the simulation finds show that the log has what it needs.
func TestViolations(t *testing.T) {
	five := "five@12:00:05 attempt 1 try 1 token 2 on a"
	for want, plant := range map[string]func(*maker){
		"0 faults": func(m *maker) { m.Faults = nil },
		"a run that was done: false": func(m *maker) {
			m.Effects = slices.DeleteFunc(m.Effects, func(e Effect) bool { return e.What == Done })
		},

		"S1 exclusive at 12:00:36.100": func(m *maker) { m.tell(37, Beat, "a", "rerun", at(20), 1, 2).Stale = true },
		"S1 covered at 12:00:01.100":   func(m *maker) { m.tell(16.1, Beat, "b", leader, time.Time{}, 1, 2) },
		"S2 lease at 12:00:39.000":     func(m *maker) { m.writeOf("rerun", 3).Lease = "F" },
		"S3 claim at 12:00:41.000":     func(m *maker) { m.tell(41, Started, "c", "five", at(45), 1, 9) },
		"S3 claim at 12:00:05.100":     func(m *maker) { m.writeOf("five", 1).Time = at(5.2) },
		"S3 claim at 12:00:05.200":     func(m *maker) { m.tell(5.2, Started, "a", "five", at(5), 1, 2).Got = at(5.3) },
		"S3 token at 12:00:30.000":     func(m *maker) { m.writeOf("five", 4).Record.Token = 2 },
		"S4 attempt at 12:00:41.000": func(m *maker) {
			m.write(41, "claim", "c", "X", written("five", "s", 6, at(30), at(30), 2, event.Running))
		},
		"S4 once at 12:01:00.100": func(m *maker) {
			m.write(60, "claim", "a", "X", written("rerun", "s", 4, at(20), at(20), 3, event.Running))
			m.tell(60.1, Started, "a", "rerun", at(20), 3, 4)
		},
		"S5 ledger at 12:00:30.000":     func(m *maker) { m.writeOf("five", 4).Record.History[0].Count = 2 },
		"S5 ledger at 12:00:31.000":     func(m *maker) { m.writeOf("five", 5).Record.Watermark = at(20) },
		"S5 ledger at 12:00:15.000":     func(m *maker) { m.writeOf("ten", 2).Record.Run.Tick = at(20) },
		"S5 facts at 12:00:06.000":      func(m *maker) { m.find(Ended, "five", 0).Failed = true },
		"S12 previous at 12:00:30.100":  func(m *maker) { m.find(Started, "five", 2).Previous = at(0) },
		"S7 checkpoint at 12:00:30.200": func(m *maker) { m.find(Loaded, pages, 0).Position = 0 },
		"S7 fence at 12:00:36.200":      func(m *maker) { m.find(Blind, "rerun", 0).Stale = false },
		"S7 fence at 12:00:38.000": func(m *maker) {
			m.find(Done, "rerun", 1).Stale = true
			m.tell(38.05, Beat, "c", "rerun", at(20), 2, 3)
		},

		"rerun@12:00:20 attempt 6 try 1 token 7 on c is start 6": func(m *maker) {
			for n := 3; n <= 6; n++ {
				m.tell(38.1, Started, "c", "rerun", at(20), n, int64(n+1))
			}
		},
		"five@12:00:05 attempt 1 try 1 token 4 on a succeeded, as had " + five:         func(m *maker) { m.find(Done, "five", 1).Tick = at(5) },
		"the claim with token 4 was taken back at 12:01:00.100000000, and its run had": func(m *maker) { m.tell(60.05, Started, "c", pages, at(60), 1, 4) },
		"five: c writes a spec that no version has": func(m *maker) {
			m.write(41, "settle", "c", "X", written("five", "s7", 4, at(30), at(30), 1, event.Succeeded))
		},
		"five: c is given a lease at 12:00:23.990000000, and that of b is in force until 12:00:24.990000000": func(m *maker) {
			c := *m.acquisition("C")
			c.Replica, c.Lease, c.Time = "c", "X", at(23.99)
			m.Requests = slices.Insert(m.Requests, slices.Index(m.Requests, m.acquisition("C")), &c)
		},
		"five: the tick 12:01:00.000 has no fate": func(m *maker) { m.Unwell = []string{"five: the tick 12:01:00.000 has no fate"} },

		"c, started at 12:00:00.000000000, did not stop within":                      func(m *maker) { m.Exits[1].Asked = tooLong },
		"c, started at 12:00:00.000000000, ended at 12:00:50.000000000 with code 0":  func(m *maker) { m.Exits[1].Asked = "" },
		"c, started at 12:00:00.000000000, ended at 12:00:50.000000000 with code 2":  func(m *maker) { m.Exits[1].Code = 2 },
		"b, started at 12:00:00.000000000, ended at 12:00:11.000000000 with code 2":  func(m *maker) { m.Exits[0].Code = 2 },
		"c, started at 12:00:00.000000000, ended at 12:00:50.000000000 with code -1": func(m *maker) { m.Exits[1].Code = -1 },
		"as if a run ignored its context, and none did":                              func(m *maker) { m.Exits[1].Code = exitOverrun },
	} {
		t.Run(want, func(t *testing.T) {
			m := good()
			plant(m)
			if bad := strings.Join(violations(m.Story, versionsOf), "\n"); !strings.Contains(bad, want) {
				t.Errorf("got %q", bad)
			}
		})
	}
}
