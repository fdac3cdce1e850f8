package check_test

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// What the simulation did not look at once: starting
// deadlines, reasons, Overrun, HealthCheck, stops, and jobs that run everywhere.
var _ = plant(stories{
	"": {
		func(s *story) { s.servedAnew(2.5) }, // the record that is made then shows the same second
		// A tick came due under the run, and the record says so.
		func(s *story) {
			s.begin("a", "1", 10, 11, 21)
			s.finish("a", "1", 21.5, store.Succeeded)
			s.Events[len(s.Events)-1].Record.History = append([]store.Outcome{{Tick: at(20), Status: store.Skipped, Reason: "overlap"}}, s.last.History...)
			s.Events[len(s.Events)-1].Record.Watermark = at(20)
		},
		// A run that goes on after a time-out keeps its lease.
		func(s *story) {
			s.begin("a", "1", 10, 11, 40).timeOut(15)
			for t := 15.0; t < 40; t += 5 {
				s.request("a", "renew", "1", t, 200)
			}
		},
		// The process is ended in time.
		func(s *story) {
			s.begin("a", "1", 10, 11, 25.5).timeOut(15)
			s.add(check.Event{What: check.Overran, Replica: "a", Job: "job", Time: at(24.5)})
		},
		// One that claimed, and was asked to stop after the run had begun.
		func(s *story) {
			s.begin("a", "1", 10, 11, 13)
			s.say("a", 11.5, check.Stop)
			s.say("a", 14, check.Gone)
		},
	},
	"I4 checkpoint": {func(s *story) {
		s.begin("a", "1", 10, 11, 13)
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(12), Note: "a checkpoint beyond MaxCheckpoint was saved"})
	}},
	"I6 healthy": {
		func(s *story) { s.ill(12); s.ill(14); s.begin("a", "1", 10, 11, 21.5) },
		func(s *story) { s.ill(12); s.begin("a", "1", 10, 11, 20).cancelled(15, soloist.ErrStalled) },
	},
	"I7c chatter": {func(s *story) {
		s.begin("a", "1", 10, 11, 21)
		for i := range 12 {
			s.write("a", "progress", "1", 11.2+0.8*float64(i), func(r *store.Record) { r.Run.Stopping = i%2 == 0 })
		}
	}},
	"I8 fresh": {func(s *story) {
		s.say("a", 10.8, check.Stop)
		s.say("a", 15, check.Gone)
		s.begin("a", "1", 10, 11, 13)
	}},
	"I13 everywhere": {
		func(s *story) { s.everywhere(); s.request("a", "read", "", 5, 200).Job = "here" },
		func(s *story) { s.here(10, 11, 12); s.here(10, 13, 14) },
		func(s *story) { s.here(10, 11, 22); s.here(20, 21, 22) },
		func(s *story) { s.here(10, 11, 12); s.say("", 15, check.Healed).Replica = "" },
	},
	"I15 attempts": {func(s *story) {
		s.reruns()
		s.begin("a", "1", 10, 11, 12).cancelled(11.5, soloist.ErrStopped)
		s.acquire("b", "2", 30)
		s.settle("b", "2", 30.5, store.Outcome{Tick: at(10), Status: store.Abandoned, Reason: "its runner died", Token: s.last.Token})
	}},
	"I15 tries": {
		func(s *story) { s.begin("a", "1", 10, 11, 12).Try = 3 },
		func(s *story) {
			s.begin("a", "1", 10, 11, 12).Note = "failed"
			s.run("a", 13, 14).Try = 2
		},
	},
	"I15 rest": {func(s *story) {
		s.Fleet["a"][0].Every, s.Fleet["a"][0].Backoff = 0, time.Minute
		s.begin("a", "1", 10, 11, 12).cancelled(11.5, soloist.ErrStalled)
		s.finish("a", "1", 12.5, store.Stalled)
		s.begin("a", "2", 14, 15, 16)
	}},
	"I16 occupied": {func(s *story) {
		s.Fleet["a"][0].Every = time.Minute
		s.tick("a", "1", 60)
		s.add(check.Event{What: check.Leased, Job: "job", Time: at(70), End: at(500)})
		s.request("a", "read", "", 480, 200)
	}},
	"I17 unhindered": {func(s *story) {
		s.Fleet["a"][0].Every = time.Minute
		s.acquire("a", "1", 181)
		s.settle("a", "1", 181.5, store.Outcome{From: at(0), Tick: at(120), Count: 2, Status: store.Missed, Reason: "a newer one was due"})
	}},
	"I19 overlap": {func(s *story) {
		s.tick("a", "1", 10)
		s.acquire("b", "2", 40)
		s.settle("b", "2", 40.5, store.Outcome{From: at(10), Tick: at(30), Count: 2, Status: store.Skipped, Reason: "overlap"})
	}},
	"I19 reason": {
		func(s *story) { s.says(12, store.Missed, "a newer one was due") },
		func(s *story) { s.says(40, store.Missed, "too many were due") },
		func(s *story) {
			s.Fleet["a"][0].StartingDeadline = time.Minute
			s.says(40, store.Missed, "past the starting deadline")
		},
		func(s *story) { s.says(12, store.Missed, "the schedule changed") },
		func(s *story) { s.says(12, store.Skipped, "paused") },
		func(s *story) { s.says(12, store.Missed, "the moon was full") },
		func(s *story) {
			s.begin("a", "1", 10, 11, 12).Note = "failed"
			s.finish("a", "1", 13, store.Succeeded)
		},
		func(s *story) { s.begin("a", "1", 10, 11, 14); s.finish("a", "1", 13, store.Succeeded) }, // it had not returned
		func(s *story) { s.begin("a", "1", 10, 11, 12); s.finish("a", "1", 13, store.Failed) },
		func(s *story) { s.begin("a", "1", 10, 11, 12); s.finish("a", "1", 13, store.Abandoned) },
		func(s *story) { s.gaveUp("its runner died") },
		func(s *story) { s.gaveUp("unlocked") },
	},
	"I20 deadline": {
		func(s *story) {
			s.Fleet["a"][0].StartingDeadline = 12 * time.Second
			s.acquire("a", "1", 24)
			s.claim("a", "1", 24.5, 10)
		},
		func(s *story) {
			s.reruns()
			s.Fleet["a"][0].StartingDeadline = 5 * time.Second
			s.crash()
			s.again("b", "2", 118)
		},
		func(s *story) { s.begin("a", "1", 10, 42, 43) },
	},
	"I21 overrun": {
		func(s *story) { s.begin("a", "1", 10, 11, 40).cancelled(22.3, store.ErrLost) },
		func(s *story) { s.begin("a", "1", 10, 11, 80).timeOut(15); s.request("a", "renew", "1", 15, 200) },
		func(s *story) { // too late
			s.begin("a", "1", 10, 11, 60).timeOut(15)
			s.add(check.Event{What: check.Overran, Replica: "a", Job: "job", Time: at(50)})
		},
	},
	"I22 apart": {
		func(s *story) { // other days under one hash
			s.Fleet["b"] = slices.Clone(s.Fleet["b"])
			s.Fleet["b"][0].Closed = "mon"
			s.tick("a", "1", 10)
			s.tick("b", "2", 20)
		},
		func(s *story) { // the same days under two
			s.tick("a", "1", 10)
			s.acquire("b", "2", 20)
			s.last.Definition.Spec = "other"
			s.claim("b", "2", 20.5, 20)
		},
	},
	"I22 taken back": {func(s *story) {
		s.Fleet["v"] = []check.Definition{{Name: "job", Lease: lease}}
		s.say("v", 20, check.Up).Cause = "an aborted deploy"
		s.hold("v", "1", 30).Record.Definition.Spec = "younger"
		s.say("v", 40, check.Crash)
		s.request("a", "read", "", 900, 200)
	}},
	"I23 paused": {func(s *story) { // it is known eight seconds later
		s.order(store.OrderPause, 1, 2)
		s.begin("a", "1", 20, 21, 22)
		s.request("a", "read", "", 60, 200)
	}},
	"I23 paused itself": {func(s *story) { // after one failure
		for _, d := range s.Fleet {
			d[0].PauseAfter = 1
		}
		s.hold("a", "1", 10)
		s.finish("a", "1", 12, store.Failed)
		s.request("a", "release", "1", 13, 200)
		s.begin("a", "2", 20, 21, 22)
		s.request("a", "read", "", 60, 200)
	}},
	"I23 requested": {
		func(s *story) { s.servedAnew(8) },
		func(s *story) { // twice
			s.order(store.OrderRun, 1, 2)
			s.serve("a", "1", 10)
			s.serve("b", "2", 30)
		},
		func(s *story) { // too late
			s.order(store.OrderRun, 1, 2).End = at(5)
			s.serve("a", "1", 10)
		},
		func(s *story) { // not at all
			s.order(store.OrderRun, 1, 2).End = at(20)
			s.say("", 30, check.Healed).End = at(600)
			s.request("a", "read", "", 700, 200)
		},
	},
	"I23 cancelled": {
		func(s *story) { // it goes on
			s.begin("a", "1", 10, 11, 60)
			s.order(store.OrderCancel, 20, 21).Token = s.last.Token
		},
		func(s *story) { s.begin("a", "1", 10, 11, 60).cancelled(20, soloist.ErrCancelled) },
		func(s *story) { // another run was
			s.begin("a", "1", 10, 11, 12).cancelled(11.5, soloist.ErrCancelled)
			s.order(store.OrderCancel, 5, 6).Token = s.last.Token - 1
		},
	},
})

// order is one of an operator, given and confirmed.
func (s *story) order(kind store.OrderKind, from, to float64) *check.Event {
	return s.add(check.Event{What: check.Ordered, Replica: check.Orderer, Job: "job", Op: string(kind), Request: "please",
		Time: at(from), Sent: at(from), Heard: at(to)})
}

// servedAnew is a run that was ordered, and is run again when the entry was deleted.
func (s *story) servedAnew(deleted float64) {
	s.order(store.OrderRun, 0.3, 0.4)
	s.serve("a", "1", 0.6)
	s.deleted(deleted)
	s.write("a", "create", "", deleted+0.5, func(r *store.Record) {
		*r = store.Record{Token: 1000, Run: store.Run{Status: store.Idle, Lease: store.Seconds(lease)}, Watermark: at(deleted), Created: at(deleted)}
	})
	s.serve("a", "2", deleted+1)
}

// serve is a run that was ordered.
func (s *story) serve(replica, id string, t float64) {
	s.acquire(replica, id, t)
	s.write(replica, "claim", id, t+0.5, func(r *store.Record) {
		r.Token, r.Run.Tick, r.Run.Attempt, r.Run.Status, r.Run.Request = r.Token+1, at(t), 1, store.Running, "please"
	})
	s.run(replica, t+1, t+2).Request = "please"
}

// begin is a tick that is claimed, and its run.
func (s *story) begin(replica, id string, tick, from, to float64) *ran {
	s.hold(replica, id, tick)
	return &ran{s.run(replica, from, to)}
}

// A ran is a run of a story.
type ran struct{ *check.Event }

func (r *ran) cancelled(t float64, cause error) { r.Cancelled, r.Cause = at(t), cause.Error() }

func (r *ran) timeOut(t float64) { r.cancelled(t, soloist.ErrTimeout) }

// settle writes an outcome that no run of the writer has.
func (s *story) settle(replica, id string, t float64, f store.Outcome) {
	s.write(replica, "settle", id, t, func(r *store.Record) {
		r.History = append([]store.Outcome{f}, r.History...)
		r.Watermark = f.Tick
	})
}

// says is the outcome of tick 10 as a replica tells it at t.
func (s *story) says(t float64, status store.Status, reason string) {
	s.acquire("a", "1", t-0.5)
	s.settle("a", "1", t, store.Outcome{Tick: at(10), Status: status, Reason: reason})
}

// gaveUp is a run of which another replica says what became of it.
func (s *story) gaveUp(reason string) {
	s.begin("a", "1", 10, 11, 12)
	s.acquire("b", "2", 30)
	s.settle("b", "2", 30.5, store.Outcome{Tick: at(10), Status: store.Abandoned, Reason: reason, Token: s.last.Token})
}

// reruns has ticks run again whose runner died.
func (s *story) reruns() { s.Fleet["a"][0].Interrupted = soloist.Rerun }

// ill is a call of HealthCheck that fails, as do two in a row.
func (s *story) ill(t float64) {
	d := &s.Fleet["a"][0]
	d.Pulse, d.HealthInterval, d.FailureThreshold = check.Weak, 2*time.Second, 2
	s.add(check.Event{What: check.Asked, Replica: "a", Job: "job", Time: at(t), End: at(t + 0.1), Note: "ill"})
}

// everywhere adds a job that runs on each replica.
func (s *story) everywhere() {
	d := append(s.Fleet["a"][:2:2], check.Definition{Name: "here", Every: 10 * time.Second, EveryReplica: true})
	s.Fleet["a"], s.Fleet["b"] = d, d
}

// here is a run of that.
func (s *story) here(tick, from, to float64) {
	s.everywhere()
	s.add(check.Event{What: check.Ran, Replica: "a", Job: "here", Tick: at(tick), Attempt: 1, Try: 1, Time: at(from), End: at(to)})
}

var _ = plant(stories{
	"I4 checkpoint": {func(s *story) {
		// its replica dies long after that
		s.hold("a", "1", 10)
		s.write("a", "save", "1", 11, func(*store.Record) {}).Note = "3"
		s.add(check.Event{What: check.Loaded, Replica: "a", Job: "job", Token: s.last.Token, Time: at(12), Note: "2"})
		s.say("a", 100, check.Crash)
	}},
})

var _ = plant(stories{
	"I21 overrun": {func(s *story) {
		// its machine is suspended long after that
		s.begin("a", "1", 10, 11, 60).timeOut(15)
		s.freeze(50, 59)
	}},
})
