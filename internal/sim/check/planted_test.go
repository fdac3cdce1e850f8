package check_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

const lease = 15 * time.Second

// A story is a log made by hand: of the job "job", every ten seconds, that the
// replicas a and b do.
type story struct {
	check.Log
	last store.Record
	job  string // whose entry the requests are about; empty: "job"
}

var midnight = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return midnight.Add(time.Duration(seconds * float64(time.Second)))
}

func newStory() *story {
	d := []check.Definition{{Name: "job", Every: 10 * time.Second, Lease: lease, MaxTries: 2}, {Name: check.Foreign, Every: time.Minute}}
	s := &story{Log: check.Log{Fleet: map[string][]check.Definition{"a": d, "b": d}, Drift: map[string]int64{}},
		last: store.Record{Token: 100, Run: store.Run{Status: store.Idle, Lease: store.Seconds(lease)}, Watermark: at(0), Created: at(0)}}
	s.say("a", 0, check.Up)
	s.say("b", 0, check.Up)
	s.request("a", "read", "", 0.1, 200)
	s.request("b", "read", "", 0.1, 200)
	s.write("a", "create", "", 0.2, func(*store.Record) {})
	return s
}

func (s *story) add(e check.Event) *check.Event {
	s.Events = append(s.Events, &e)
	return &e
}

func (s *story) say(replica string, t float64, what check.What) *check.Event {
	return s.add(check.Event{What: what, Replica: replica, Time: at(t), End: at(t)})
}

// request is one that the service answers within a tenth of a second.
func (s *story) request(replica, op, lease string, t float64, status int) *check.Event {
	return s.add(check.Event{What: check.Request, Replica: replica, Job: cmp.Or(s.job, "job"), Op: op, Lease: lease, Match: true, Status: status,
		Sent: at(t - 0.05), Time: at(t), Heard: at(t + 0.05)})
}

// write changes the record.
func (s *story) write(replica, op, lease string, t float64, f func(*store.Record)) *check.Event {
	r := s.last
	r.History = slices.Clone(r.History)
	if f(&r); op == "claim" {
		r.Run.Claimed = at(t)
	}
	s.last = r
	e := s.request(replica, op, lease, t, 200)
	e.Record = &r
	return e
}

func (s *story) acquire(replica, id string, t float64) *check.Event {
	e := s.request(replica, "acquire", id, t, 201)
	e.Span = lease
	return e
}

func (s *story) claim(replica, id string, t float64, tick float64) *check.Event {
	return s.write(replica, "claim", id, t, func(r *store.Record) {
		r.Token, r.Run.Tick, r.Run.Attempt, r.Run.Status, r.Run.Finished = r.Token+1, at(tick), 1, store.Running, time.Time{}
	})
}

// hold is a lease and the claim of the tick at which it is acquired.
func (s *story) hold(replica, id string, tick float64) *check.Event {
	s.acquire(replica, id, tick)
	return s.claim(replica, id, tick+0.5, tick)
}

// holdWithBeat is hold of a run with a beat of three seconds.
func (s *story) holdWithBeat(replica, id string, tick float64) {
	claim := s.hold(replica, id, tick)
	claim.Record.Beat = store.Beat{Token: claim.Record.Token, Length: store.Seconds(3 * time.Second)}
	s.last.Beat = claim.Record.Beat
}

func (s *story) finish(replica, id string, t float64, status store.Status) *check.Event {
	return s.write(replica, "finish", id, t, func(r *store.Record) {
		r.Run.Status, r.Run.Finished, r.Watermark = status, at(t), r.Run.Tick
		r.History = append([]store.Outcome{{Tick: r.Run.Tick, Status: status, Token: r.Token, Attempt: r.Run.Attempt, Start: r.Run.Claimed, End: r.Run.Finished}}, r.History...)
	})
}

// rerun has one tick claimed so often under Rerun; each attempt but the last dies,
// or is stopped.
func (s *story) rerun(attempts int, stopped func(n int) bool) {
	for _, d := range s.Fleet {
		d[0].Interrupted = soloist.Rerun
	}
	for n := 1; n <= attempts; n++ {
		t, id, who := 40*float64(n)-30, fmt.Sprint(n), []string{"a", "b"}[n%2]
		s.acquire(who, id, t)
		s.claim(who, id, t+0.5, 10).Record.Run.Attempt = n
		s.last.Run.Attempt = n
		run := s.run(who, t+1, t+2)
		switch {
		case n == attempts:
			s.finish(who, id, t+3, store.Succeeded)
		case stopped(n):
			run.Cause = soloist.ErrStopped.Error()
			s.write(who, "finish", id, t+3, func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Abandoned, at(t+3) })
		default:
			run.Cause = store.ErrLost.Error()
		}
		if n == attempts || stopped(n) {
			s.request(who, "release", id, t+4, 200)
		}
	}
}

// takeBack is what a replica does that was stopped before it ran what it claimed.
func (s *story) takeBack(replica, id string, t float64) {
	s.write(replica, "take back", id, t, func(r *store.Record) { r.Run.Tick, r.Run.Attempt, r.Run.Status = time.Time{}, 0, store.Idle })
}

// run is a call of Do under the last claim.
func (s *story) run(replica string, from, to float64) *check.Event {
	for _, note := range []string{"run started", "run ended"} {
		s.add(check.Event{What: check.Said, Replica: replica, Job: "job", Token: s.last.Token, Time: at(from), Note: note})
	}
	return s.add(check.Event{What: check.Ran, Replica: replica, Job: "job", Token: s.last.Token, Tick: s.last.Run.Tick,
		Attempt: s.last.Run.Attempt, Try: 1, Time: at(from), End: at(to)})
}

// suspendedAtBegin is a run that is said to begin at a time in which its replica is suspended, and that sees the end of its
// lease after that. Another replica has the job by then.
func (s *story) suspendedAtBegin(said float64) {
	for _, d := range s.Fleet {
		d[0].Interrupted = soloist.Rerun
	}
	s.hold("a", "1", 10)
	s.freeze(11, 40)
	begun := len(s.Events)
	r := s.run("a", 40.0001, 40.05)
	s.Events[begun].Time = at(said)
	r.Cancelled, r.Cause, r.Note = at(40.03), store.ErrLost.Error(), "context canceled"
	s.acquire("b", "2", 35)
	s.claim("b", "2", 35.5, 10).Record.Run.Attempt = 2
	s.last.Run.Attempt = 2
	s.run("b", 36, 41)
	s.finish("b", "2", 41.2, store.Succeeded)
	s.request("b", "release", "2", 41.4, 200)
}

// tick is all of a tick that goes well, in four seconds.
func (s *story) tick(replica, id string, tick float64) {
	s.hold(replica, id, tick)
	s.run(replica, tick+1, tick+3)
	s.finish(replica, id, tick+3.5, store.Succeeded)
	s.request(replica, "release", id, tick+4, 200)
}

func (s *story) effect(token int64, t float64, note string) {
	s.add(check.Event{What: check.Effect, Replica: "a", Job: "job", Token: token, Sent: at(t), Time: at(t), Note: note})
}

// planted are the stories, each by the invariant that it contradicts; of "", none.
var planted = stories{}

type stories map[string][]func(s *story)

// plant adds stories.
func plant(all stories) bool {
	for name, more := range all {
		planted[name] = append(planted[name], more...)
	}
	return true
}

var _ = plant(stories{
	"": {
		func(s *story) { s.rerun(9, func(n int) bool { return n%2 == 0 }) },
		func(s *story) { s.tick("a", "1", 10); s.tick("b", "2", 20) },
		func(s *story) { // a lease longer than the definition says: its renewals are repeated later
			s.acquire("a", "1", 10).Span = time.Minute
			s.claim("a", "1", 10.5, 10)
			e := s.request("a", "renew", "1", 30, 0)
			e.Heard, e.Done = time.Time{}, at(30.5)
			s.request("a", "renew", "1", 32.6, 200)
			s.run("a", 11, 40)
			s.finish("a", "1", 41, store.Succeeded)
		},
		func(s *story) {
			s.hold("a", "1", 10)
			s.takeBack("a", "1", 11)
			s.request("a", "release", "1", 11.5, 200)
			s.acquire("b", "2", 12)
			s.claim("b", "2", 12.5, 10)
			s.run("b", 13, 14)
			s.finish("b", "2", 14.5, store.Succeeded)
		},
		func(s *story) { s.suspendedAtBegin(11.02) },
		func(s *story) { // a machine was suspended before it claimed: the watch of the deadline comes a second after that
			for _, d := range s.Fleet {
				d[0].Every = 30 * time.Second
			}
			s.acquire("a", "1", 30)
			s.freeze(30.2, 41.6)
			s.claim("a", "1", 41.8, 30)
			s.run("a", 41.9, 42.55)
			s.finish("a", "1", 42.58, store.Succeeded)
			s.request("a", "release", "1", 42.7, 200)
		},
	},
	"I1 belief": {
		func(s *story) {
			s.begin("a", "1", 10, 11, 40)
			s.begin("b", "2", 30, 31, 33)
		},
		func(s *story) { s.suspendedAtBegin(36.5) },
	},
	"I1 trust": {func(s *story) {
		s.begin("a", "1", 10, 11, 22.6)
	}},
	"I2a claim": {
		func(s *story) { s.tick("a", "1", 10); s.tick("b", "2", 10) },
		func(s *story) { s.run("a", 11, 12) },
		func(s *story) { // before its claim
			s.begin("a", "1", 10, 10.3, 12)
		},
		func(s *story) { // with the same try twice
			s.begin("a", "1", 10, 11, 12)
			s.run("a", 13, 14)
		},
		func(s *story) { // under a claim that was taken back
			s.hold("a", "1", 10)
			s.takeBack("a", "1", 11)
			s.run("a", 11.5, 12)
		},
		func(s *story) {
			s.hold("a", "1", 10)
			s.last.Run.Attempt = 3
			s.acquire("b", "2", 30)
			s.claim("b", "2", 31, 10).Record.Run.Attempt = 3
		},
	},
	"I2a dead": {func(s *story) {
		s.begin("a", "1", 10, 11, 13)
		s.request("operator", "break", "", 11.5, 202)
		s.acquire("b", "2", 12)
		s.claim("b", "2", 12.5, 10)
	}},
	"I2b holder": {
		func(s *story) { s.tick("a", "1", 10); s.acquire("b", "2", 20); s.claim("b", "1", 20.5, 20) },
		func(s *story) { s.claim("a", "1", 10.5, 10) },
		func(s *story) { s.acquire("a", "1", 10); s.claim("a", "1", 25.5, 10) },
		func(s *story) { s.acquire("a", "1", 10); s.claim("a", "", 10.5, 10) },
		func(s *story) { s.hold("a", "1", 10).Match = false },
		func(s *story) { s.write("b", "create", "", 5, func(*store.Record) {}) },
	},
	"I2c token": {
		func(s *story) { // another tick under the token
			s.tick("a", "1", 10)
			s.acquire("b", "2", 20)
			s.write("b", "settle", "2", 20.5, func(r *store.Record) { r.Run.Tick = at(20) })
		},
		func(s *story) { // a run that has ended begins again
			s.tick("a", "1", 10)
			s.acquire("b", "2", 20)
			s.write("b", "settle", "2", 20.5, func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Running, time.Time{} })
		},
		func(s *story) { s.tick("a", "1", 10); s.last.Token -= 5; s.tick("b", "2", 20) },
		func(s *story) { s.hold("a", "1", 10).Record.Run.Status = store.Failed },
	},
	"I2d identity": {
		func(s *story) { s.tick("a", "1", 10); s.tick("a", "1", 20) },
		func(s *story) { s.tick("a", "1", 10); s.request("b", "renew", "1", 20, 409) },
	},
	"I3 ledger": {
		func(s *story) { s.tick("a", "1", 10); s.last.Watermark = at(5); s.tick("b", "2", 20) },
		func(s *story) { s.tick("a", "1", 10); s.tick("b", "2", 40) },
		func(s *story) { s.tick("a", "1", 10); s.last.Watermark = at(0); s.tick("b", "2", 10) },
		func(s *story) {
			s.acquire("a", "1", 10)
			s.write("a", "settle", "1", 10.5, func(r *store.Record) {
				r.History = []store.Outcome{{From: at(0), Tick: at(30), Count: 2, Status: store.Missed}}
				r.Watermark = at(30)
			})
		},
		func(s *story) { s.acquire("a", "1", 10); s.request("a", "save", "1", 10.5, 201) },
	},
	"I3 outcome": {func(s *story) {
		s.begin("a", "1", 10, 11, 13)
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(14), Note: "the outcome was refused: a replica settles this run"})
	}},
	"I4 fence": {
		func(s *story) { s.effect(7, 1, "accepted"); s.effect(6, 2, "accepted") },
		func(s *story) { s.tick("a", "1", 10); s.effect(s.last.Token, 12, "refused") },
	},
	"I4 checkpoint": {func(s *story) {
		s.hold("a", "1", 10)
		s.write("a", "save", "1", 11, func(*store.Record) {}).Note = "3"
		s.add(check.Event{What: check.Loaded, Replica: "a", Job: "job", Token: s.last.Token, Time: at(12), Note: "2"})
	}},
	"I29 silence": {
		func(s *story) { // the run does not beat
			s.hold("a", "1", 10)
			s.request("b", "replace", "", 20, 202)
		},
		func(s *story) { // its last beat is too young
			s.holdWithBeat("a", "1", 10)
			s.request("b", "replace", "", 12.5, 202)
		},
		func(s *story) { // its context lives
			s.holdWithBeat("a", "1", 10)
			s.run("a", 11, 30)
			s.request("b", "replace", "", 15, 202)
		},
	},
	"I7c no storm": {func(s *story) {
		for i := range 24 {
			s.request("a", "read", "", 30+0.03*float64(i), 200)
		}
	}},
	"I7a bounded": {
		func(s *story) { s.request("a", "read", "", 10, 0).Done = at(12.6) },
		func(s *story) { s.request("a", "token", "", 10, 0).Done = at(71) },
		func(s *story) { e := s.request("a", "container", "", 10, 201); e.Job, e.Done = "", at(15.1) },
	},
	"I7a patience": {func(s *story) {
		s.hold("a", "1", 10)
		e := s.request("a", "renew", "1", 15, 0)
		e.Heard, e.Done = time.Time{}, at(15.5)
		s.run("a", 11, 18)
	}},
	"I8 shutdown": {
		func(s *story) { s.say("a", 9, check.Stop); s.say("a", 15, check.Gone); s.tick("a", "1", 10) },
		func(s *story) { s.say("a", 5, check.Stop) },
		func(s *story) {
			s.say("a", 5, check.Stop)
			s.say("a", 7, check.Gone)
			s.request("a", "read", "", 8, 200)
		},
	},
	"I9 time": {func(s *story) { s.acquire("a", "1", 8); s.claim("a", "1", 8.5, 10); s.run("a", 8.7, 9) }},
	"I9 order": {func(s *story) {
		s.hold("a", "1", 20)
		s.acquire("b", "2", 40)
		s.claim("b", "2", 40.5, 10)
	}},
	"I10 once": {func(s *story) {
		s.tick("a", "1", 10)
		s.acquire("b", "2", 20)
		s.claim("b", "2", 20.5, 10).Record.Run.Attempt = 2
		s.run("b", 21, 22)
	}},
	"I10 told": {func(s *story) {
		s.hold("a", "1", 10).Record.Run.Request = "wish"
		s.run("a", 11, 14)
		s.say("b", 13, check.Said).Note = "run by hand: abandoned"
		s.Events[len(s.Events)-1].Job, s.Events[len(s.Events)-1].Request = "job", "wish"
		s.finish("a", "1", 14, store.Succeeded)
	}},
	"I11 release": {
		func(s *story) {
			s.begin("a", "1", 10, 11, 14)
			s.finish("a", "1", 12, store.Succeeded)
			s.request("a", "release", "1", 13, 200)
		},
		func(s *story) {
			s.begin("a", "1", 10, 11, 12)
			s.request("a", "release", "1", 13, 200)
		},
	},
	"I11 let go": {func(s *story) {
		s.begin("a", "1", 10, 11, 12)
		s.finish("a", "1", 12.5, store.Succeeded)
		s.request("a", "renew", "1", 16, 200)
		s.request("a", "release", "1", 17, 200)
	}},
	"I11 prompt": {func(s *story) {
		s.begin("a", "1", 10, 11, 12)
		s.finish("a", "1", 13.5, store.Succeeded)
		s.request("a", "release", "1", 13.7, 200)
	}},
	"I14 fail closed": {
		func(s *story) {
			s.foreign()
			s.acquire("a", "1", 10).Job = check.Foreign
		},
		func(s *story) {
			s.foreign()
			s.request("a", "read", "", 10, 200).Job = check.Foreign
		},
	},
	"I15 policy": {
		func(s *story) { s.tick("a", "1", 10); s.tick("b", "2", 10) },
		func(s *story) { s.rerun(6, func(int) bool { return false }) },
		func(s *story) { s.rerun(9, func(n int) bool { return n%3 == 0 }) },
	},
	"I16 audit": {
		func(s *story) { s.hold("a", "1", 10) },
		func(s *story) {
			s.tick("a", "1", 10)
			s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(14), Note: "run ended"})
		},
	},
	"I17 liveness": {
		func(s *story) { s.tick("a", "1", 10); s.say("", 35, check.Healed).Replica = "" },
		func(s *story) {
			s.say("", 5, check.Healed)
			s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(200), Note: "health: stuck"})
		},
	},
})

// Each invariant is contradicted by a story; what goes well contradicts none.
func TestCheckerFindsWhatIsPlanted(t *testing.T) {
	for _, i := range check.Invariants {
		if planted[i.Name] == nil {
			t.Errorf("nobody plants a violation of %s", i.Name)
		}
	}
	for name, all := range planted {
		for n, tell := range all {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				s := newStory()
				tell(s)
				slices.SortStableFunc(s.Events, func(a, b *check.Event) int { return a.Time.Compare(b.Time) })
				var got []string
				for _, v := range check.Judge(&s.Log) {
					got = append(got, v.String())
				}
				if name == "" && len(got) > 0 {
					t.Errorf("nothing is wrong, and it says %q", got)
				}
				if name != "" && !slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, name+" at") }) {
					t.Errorf("it says %q", got)
				}
			})
		}
	}
}

// foreign plants the entry of a newer program.
func (s *story) foreign() {
	e := s.request("operator", "create", "", 0.3, 201)
	e.Job = check.Foreign
}

var _ = plant(stories{
	"I15 policy": {func(s *story) {
		// twice since the entry was deleted
		s.tick("a", "1", 10)
		s.deleted(15)
		s.write("a", "create", "", 15.5, func(r *store.Record) {
			*r = store.Record{Token: 1000, Run: store.Run{Status: store.Idle, Lease: store.Seconds(lease)}, Watermark: at(0), Created: at(15.5)}
		})
		s.acquire("b", "2", 20)
		s.claim("b", "2", 20.5, 10)
		s.run("b", 21, 0).End = time.Time{}
		s.say("b", 22, check.Crash)
		s.acquire("a", "3", 40)
		s.claim("a", "3", 40.5, 10).Record.Run.Attempt = 2
	}},
})
