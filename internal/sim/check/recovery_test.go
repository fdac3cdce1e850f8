package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// Recovery, budgets and entries that were corrupted.
var _ = plant(stories{
	"": {
		// It crashed, and the next one begins as soon as the lease has run out.
		func(s *story) { s.crash(); s.again("b", "2", 118) },
		// It begins late, since what another sent for it is under way still.
		func(s *story) {
			s.crash()
			s.again("b", "2", 130)
			e := s.request("b", "acquire", "0", 140, 409)
			e.Sent, e.Cause = at(116), string(check.Late)
		},
		// It was deleted after the last look, and nothing is due since then.
		func(s *story) {
			s.begin("a", "1", 10, 11, 12)
			s.write("operator", "write", "", 13, func(*store.Record) {})
			s.deleted(34)
			s.say("", 35, check.Healed).Replica = ""
			for _, replica := range []string{"a", "b"} {
				s.request(replica, "read", "", 36, 404)
				s.request(replica, "read", "", 36, 404).Job = check.Foreign
			}
		},
		// The entry was deleted, and what is run by hand knows nothing of it.
		func(s *story) { s.anew("by hand") },
		// A request that makes the entry comes when another was made and deleted.
		func(s *story) {
			s.deleted(6)
			s.write("b", "create", "", 7, func(r *store.Record) { r.Token = 300 })
			s.deleted(8)
			s.write("a", "create", "", 9, func(r *store.Record) { r.Token = 200 }).Sent = at(6.5)
			s.tick("a", "1", 10)
		},
		// It is suspended again before it could notice that it was.
		func(s *story) {
			s.begin("a", "1", 10, 11, 41.1)
			s.freeze(12, 30)
			s.freeze(30.01, 41)
			s.again("b", "2", 26)
		},
		// A further try begins when its replica goes on, and notices at once that
		// another has run the tick meanwhile.
		func(s *story) { s.suspended(2, 140.001) },
		func(s *story) { s.freeze(140.0004, 150); s.suspended(2, 150.001) },
		// It notices the end of its trust late since it was suspended before that,
		// during its run or its claim.
		func(s *story) {
			s.begin("a", "1", 10, 11, 22.6)
			s.freeze(12, 22)
			s.finish("a", "1", 23, store.Succeeded)
		},
		func(s *story) {
			s.acquire("a", "1", 10)
			s.claim("a", "1", 21.5, 10).Sent = at(10.1)
			s.freeze(10.2, 21.4)
			s.run("a", 22, 22.4)
			s.finish("a", "1", 23, store.Succeeded)
		},
		// A run by hand on the same replica has the lease, so the outcome of the one
		// before is given up.
		func(s *story) {
			s.begin("a", "1", 10, 11, 12)
			s.finish("a", "1", 12.5, store.Succeeded)
			s.Events[len(s.Events)-3].Note, s.Events[len(s.Events)-3].Time = "the outcome was refused", at(28)
			s.acquire("a", "2", 26)
			s.write("a", "claim", "2", 27, func(r *store.Record) {
				r.Token, r.Run.Tick, r.Run.Request, r.Run.Status, r.Run.Finished = r.Token+1, at(26.5), "wish", store.Running, time.Time{}
			})
			s.run("a", 27.2, 27.5).Request = "wish"
		},
		// Who knows that an entry is corrupted says so and leaves it alone. Who does not
		// know that it is an older version repeats what was done.
		func(s *story) {
			s.corrupted("garbage", 5, 100, nil)
			s.request("b", "read", "", 10, 200)
			s.add(check.Event{What: check.Said, Replica: "b", Job: "job", Time: at(10.1), Note: "the job is left alone"})
		},
		func(s *story) { // it was suspended, and had given the read up when the answer was there
			s.foreign()
			e := s.request("a", "read", "", 10, 200)
			e.Job, e.Heard = check.Foreign, at(40)
			s.freeze(10.02, 39.9)
			s.say("a", 45, check.Stop)
			s.say("a", 45.1, check.Gone)
		},
		func(s *story) { // it was to stop when it learnt of the newer program
			s.foreign()
			s.request("a", "read", "", 10, 200).Job = check.Foreign
			s.say("a", 10.01, check.Stop)
			s.say("a", 12, check.Gone)
		},
		func(s *story) { // it was deleted before it was mended
			s.corrupted("other", 5, 100, nil)
			s.deleted(6)
			s.write("b", "create", "", 7, func(r *store.Record) { r.Token = 200 })
		},
		func(s *story) {
			s.tick("a", "1", 10)
			s.corrupted("older", 15, 100, &store.Record{Token: 100, Created: at(0), Watermark: at(0)})
			s.last.Token, s.last.Watermark, s.last.History = 100, at(0), nil
			s.acquire("b", "2", 20)
			s.claim("b", "2", 20.5, 10)
			s.run("b", 21, 22)
			s.finish("b", "2", 23, store.Succeeded)
			s.claim("a", "3", 30, 20) // which it cannot tell from a newer one any more
		},
		func(s *story) { // another operator mended it before
			s.corrupted("other", 5, 100, nil)
			s.request("operator", "write", "", 8, 200)
			s.tick("a", "1", 10)
		},
		func(s *story) { // it hears for minutes that the service is busy, and then says so
			s.corrupted("garbage", 5, 400, nil)
			s.request("b", "read", "", 10, 200)
			s.request("b", "read", "", 100, 503)
			s.request("b", "read", "", 200, 503)
			s.add(check.Event{What: check.Said, Replica: "b", Job: "job", Time: at(210), Note: "the job is left alone"})
		},
		func(s *story) { // it answered, but not so that anybody could know
			s.foreign()
			e := s.request("a", "read", "", 10, 200)
			e.Job, e.Cause = check.Foreign, string(check.Applied500)
		},
		func(s *story) { // it was suspended between the look at its deadline and a further try
			s.begin("a", "1", 10, 11, 12)
			s.freeze(12.5, 40)
			late := check.Event{What: check.Ran, Replica: "a", Job: "job", Token: s.last.Token, Tick: s.last.Run.Tick, Attempt: 1, Try: 2}
			s.again("b", "2", 26)
			late.Time, late.End = at(40.0002), at(40.6)
			s.add(late)
			s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: late.Token, Time: late.Time, Note: "run started"})
			s.effect(late.Token, 40.2, "refused")
		},
		func(s *story) { // it holds off, and the other looks for its claim
			s.say("", 5, check.Healed).Replica = ""
			for _, replica := range []string{"a", "b"} {
				s.request(replica, "read", "", 6, 200).Job = check.Foreign
			}
			s.acquire("a", "1", 130)
			s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(130.1),
				Note: "the last runner's lease did not run out by itself: waiting until it must have given up"})
			s.write("a", "claim", "1", 138, func(r *store.Record) {
				r.Token, r.Run.Tick, r.Run.Attempt, r.Run.Status = r.Token+1, at(130), 1, store.Running
				r.Watermark, r.History = at(120), []store.Outcome{{From: at(0), Tick: at(120), Count: 12, Status: store.Missed, Reason: "a newer one was due"}}
			})
			s.run("a", 138.2, 138.4)
			s.finish("a", "1", 138.5, store.Succeeded)
			for i := range 7 {
				s.request("b", "read", "", 130.5+float64(i), 200)
			}
		},
	},
	"I0 contract": {func(s *story) {
		s.add(check.Event{What: check.Broke, Time: at(5), Note: "the store gives a lease away twice"})
	}},
	"I5 failover": {func(s *story) { s.crash(); s.again("b", "2", 130) }},
	"I6 stall": {func(s *story) {
		s.Fleet["a"][0].HeartbeatTimeout = 5 * time.Second
		s.begin("a", "1", 10, 11, 22.2)
	}},
	"I7b recovery": {
		func(s *story) { s.say("", 35, check.Healed).Replica = ""; s.tick("a", "1", 40) }, // and b does nothing
	},
	"I2a dead": {func(s *story) { s.anew("") }},
	"I2c token": {
		// The first claim of an entry repeats a token of the one before.
		func(s *story) {
			s.tick("a", "1", 10)
			s.deleted(18)
			s.write("b", "create", "", 19, func(r *store.Record) { r.Token = 100 })
			s.tick("b", "2", 20)
		},
	},
	"I10 once": {
		// It goes on, and begins a further try after that.
		func(s *story) { s.suspended(2, 140.003) },
		// It had not begun at all, so the claim was looked at after that.
		func(s *story) { s.suspended(1, 140.001) },
		// It had begun before, as the same try.
		func(s *story) {
			s.suspended(1, 140.001)
			s.say("a", 96.9, check.Said).Note = "run started"
			e := s.Events[len(s.Events)-1]
			e.Job, e.Token, e.Tick = "job", 101, at(90)
		},
		// It was suspended, and the one that had succeeded was itself.
		func(s *story) {
			s.begin("a", "1", 10, 11, 12)
			s.freeze(12.5, 15)
			s.finish("a", "1", 12.51, store.Succeeded)
			s.run("a", 15.001, 15.2).Try = 2
		},
	},
	"I12 budget": {
		func(s *story) {
			s.say("", 5, check.Healed).Replica = ""
			s.tick("a", "1", 130)
			for i := range 7 {
				s.request("b", "read", "", 130+float64(i), 200)
			}
		},
		func(s *story) {
			s.say("", 5, check.Healed).Replica = ""
			s.tick("a", "1", 130)
			for i := range 4 {
				s.request("a", "read", "", 130+float64(i), 200)
			}
		},
	},
	"I14 spoilt": {
		func(s *story) { s.corrupted("garbage", 5, 100, nil); s.acquire("a", "1", 10) },
		func(s *story) { s.corrupted("garbage", 5, 200, nil); s.request("a", "read", "", 10, 200) },
		func(s *story) {
			s.tick("a", "1", 10)
			s.corrupted("older", 15, 100, &store.Record{Token: 100, Created: at(0), Watermark: at(0)})
			s.last.Token = 100
			s.tick("a", "2", 20)
		},
	},
})

// anew is a run of an entry that was made while another goes on of the one
// before, which was deleted.
func (s *story) anew(request string) {
	s.begin("a", "1", 10, 11, 14)
	s.deleted(12)
	s.write("b", "create", "", 12.5, func(r *store.Record) { r.Token = 300 })
	s.acquire("b", "2", 13)
	s.write("b", "claim", "2", 13.5, func(r *store.Record) {
		r.Token, r.Run.Tick, r.Run.Request, r.Run.Attempt, r.Run.Status = 301, at(13.4), request, 1, store.Running
	})
	s.run("b", 13.6, 13.8).Request = request
	s.write("b", "finish", "2", 14, func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Succeeded, at(13.8) })
}

// suspended is a replica whose machine stands still from the end of its first
// try until 140, while another runs the tick again. It begins a try at t.
func (s *story) suspended(try int, t float64) {
	s.crash()
	s.Events = slices.DeleteFunc(s.Events, func(e *check.Event) bool { return e.What == check.Crash || e.Note == "run ended" })
	s.Events[len(s.Events)-1].End = at(98)
	s.freeze(98.5, 140)
	r := s.run("a", t, t+0.1)
	r.Try, r.Cancelled = try, at(t)
	s.again("b", "2", 118)
}

// crash is the end of a replica that runs what another is to go on with.
func (s *story) crash() {
	for i := range s.Fleet["a"] {
		s.Fleet["a"][i].Interrupted = soloist.Rerun
	}
	s.acquire("a", "1", 96)
	s.write("a", "claim", "1", 96.5, func(r *store.Record) {
		r.Token, r.Run.Tick, r.Run.Attempt, r.Run.Status = r.Token+1, at(90), 1, store.Running
		r.Watermark, r.History = at(80), []store.Outcome{{From: at(0), Tick: at(80), Count: 8, Status: store.Missed, Reason: "a newer one was due"}}
	})
	s.run("a", 97, 0).End = time.Time{}
	s.say("a", 100, check.Crash)
}

// again is the next attempt, or the next tick where the runner of the one before
// is given up.
func (s *story) again(replica, id string, t float64) {
	rerun := s.Fleet["a"][0].Interrupted == soloist.Rerun
	s.acquire(replica, id, t)
	s.write(replica, "claim", id, t+0.5, func(r *store.Record) {
		if r.Token, r.Run.Attempt = r.Token+1, r.Run.Attempt+1; !rerun {
			r.History = []store.Outcome{{Tick: r.Run.Tick, Status: store.Abandoned, Reason: "its runner died", Token: r.Token - 1, Attempt: 1}}
			r.Watermark, r.Run.Tick, r.Run.Attempt = r.Run.Tick, r.Run.Tick.Add(10*time.Second), 1
		}
	})
	s.run(replica, t+1, t+2)
	s.finish(replica, id, t+2.5, store.Succeeded)
}

func (s *story) deleted(t float64) {
	s.request("operator", "delete", "", t, 202)
	s.add(check.Event{What: check.Deleted, Job: "job", Time: at(t)})
}

func (s *story) freeze(from, to float64) { s.say("a", from, check.Freeze).End = at(to) }

func (s *story) corrupted(kind string, from, to float64, r *store.Record) {
	s.add(check.Event{What: check.Corrupted, Job: "job", Note: kind, Time: at(from), End: at(to), Record: r})
}

// What a fault in one job does to others is seen in the difference that it makes.
func TestCheckerFindsFaultOfAnotherJob(t *testing.T) {
	for name, late := range map[string]func(s *story){
		"tick 00:00:10.000000000 is claimed 2.5s late": func(s *story) { s.tick("a", "1", 12.5); s.last.Run.Tick = at(10) },
		"is claimed only without the fault":            func(s *story) {},
		"the outcomes are": func(s *story) {
			s.begin("a", "1", 10, 11, 13)
			s.finish("a", "1", 13.5, store.Failed)
		},
		"": func(s *story) { s.tick("b", "2", 10); s.tick("ill", "3", 20) },
	} {
		calm, faulty := newStory(), newStory()
		calm.tick("a", "1", 10)
		late(faulty)
		for _, e := range faulty.Events {
			if e.Op == "claim" {
				e.Record.Run.Tick = at(10)
			}
			if e.Replica == "ill" {
				e.Job = "ill"
			}
		}
		check.Judge(&calm.Log)
		check.Judge(&faulty.Log)
		got := check.Isolated(&calm.Log, &faulty.Log, "ill")
		found := slices.ContainsFunc(got, func(v check.Violation) bool { return strings.Contains(v.String(), name) })
		if name != "" && !found || name == "" && len(got) > 0 {
			t.Errorf("%q: it says %v", name, got)
		}
	}
}

var _ = plant(stories{
	"I1 trust": {func(s *story) {
		// its machine is suspended long after the lease could be trusted
		s.begin("a", "1", 10, 11, 40.5)
		s.freeze(30, 40)
	}},
})

var _ = plant(stories{
	"I29 silence": {func(s *story) {
		// its machine is suspended long after that
		s.holdWithBeat("a", "1", 10)
		s.run("a", 11, 30.5)
		s.freeze(20, 30)
		s.request("b", "replace", "", 15, 202)
	}},
})
