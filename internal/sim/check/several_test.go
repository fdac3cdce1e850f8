package check_test

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// twoAtOnce orders that the three ticks from 40 to 20 seconds before midnight are run again, two at a time.
func (s *story) twoAtOnce() {
	s.backfill()
	s.Events[len(s.Events)-1].Parallel = 2
}

// claimBeside claims ticks of the backfill.
func (s *story) claimBeside(replica, id string, t float64, attempt int, ticks ...float64) {
	s.acquire(replica, id, t)
	s.write(replica, "claim", id, t+0.2, func(r *store.Record) {
		r.Token, r.Run.Tick, r.Run.Attempt, r.Run.Status, r.Run.Finished = r.Token+1, at(ticks[0]), attempt, store.Running, time.Time{}
		r.Run.Request, r.Run.Order, r.Backfill.Seq, r.Backfill.Several = store.BackfillRequest(7), 7, 7, true
		for _, tick := range ticks {
			r.Backfill.Through = at(tick)
			r.Backfill.Open = append(slices.DeleteFunc(slices.Clone(r.Backfill.Open), func(o store.OpenTick) bool { return o.Tick.Equal(at(tick)) }),
				store.OpenTick{Tick: at(tick), Token: r.Token, Attempt: attempt})
		}
	})
}

// runBeside is the run of one of the ticks that were claimed.
func (s *story) runBeside(replica string, from, to, tick float64) *check.Event {
	e := s.run(replica, from, to)
	e.Tick, e.Request = at(tick), s.last.Run.Request
	return e
}

// endBeside writes that ticks have succeeded.
func (s *story) endBeside(replica, op, id string, t float64, ticks ...float64) {
	s.write(replica, op, id, t, func(r *store.Record) {
		if op == "finish" {
			r.Run.Status, r.Run.Finished = store.Succeeded, at(t)
		}
		for _, tick := range ticks {
			r.Backfill.Open = slices.DeleteFunc(slices.Clone(r.Backfill.Open), func(o store.OpenTick) bool { return o.Tick.Equal(at(tick)) })
		}
		r.Backfill.Counts = map[store.Status]int64{store.Succeeded: r.Backfill.Counts[store.Succeeded] + int64(len(ticks))}
	})
}

// firstTwo is the first claim of the backfill, whose second tick returns first.
func (s *story) firstTwo() {
	s.twoAtOnce()
	s.claimBeside("a", "1", 1, 1, -40, -30)
	s.runBeside("a", 1.4, 2, -40)
	s.runBeside("a", 1.4, 1.6, -30)
	s.endBeside("a", "progress", "1", 1.8, -30)
	s.endBeside("a", "finish", "1", 2.5, -40)
	s.request("a", "release", "1", 2.8, 200)
}

// besideFailure is the first claim of the backfill. A renewal fails under it, and none follows.
func (s *story) besideFailure() {
	s.twoAtOnce()
	s.claimBeside("a", "1", 1, 1, -40, -30)
	s.runBeside("a", 1.4, 1.6, -30)
	s.endBeside("a", "progress", "1", 1.8, -30)
	e := s.request("a", "renew", "1", 6, 0)
	e.Heard, e.Done = time.Time{}, at(6.5)
	s.runBeside("a", 1.4, 9, -40)
	s.endBeside("a", "finish", "1", 9.2, -40)
	s.request("a", "release", "1", 9.4, 200)
}

// progressBeside is a claim whose two runs both write how far they are, six times in ten seconds.
func (s *story) progressBeside() {
	s.twoAtOnce()
	s.claimBeside("a", "1", 1, 1, -40, -30)
	s.runBeside("a", 1.4, 9, -40)
	s.runBeside("a", 1.4, 9, -30)
	for i := range 12 {
		s.write("a", "progress", "1", 1.5+0.6*float64(i), func(r *store.Record) { r.Run.Stopping = i%2 == 0 })
	}
	s.endBeside("a", "finish", "1", 9.2, -40, -30)
	s.request("a", "release", "1", 9.4, 200)
}

// stalledBeside says that a run of the last claim has stalled by a time.
func (s *story) stalledBeside(t float64) {
	s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(t), Note: "the run has stalled"})
}

// theThird is the other claim of the backfill.
func (s *story) theThird() {
	s.claimBeside("b", "2", 3, 1, -20)
	s.runBeside("b", 3.4, 4, -20)
	s.endBeside("b", "finish", "2", 4.5, -20)
	s.request("b", "release", "2", 4.8, 200)
}

// cancelledBetween is a claim whose backfill is ended by an order when one of its runs has begun, and one has not.
func (s *story) cancelledBetween(order store.OrderKind) {
	s.twoAtOnce()
	s.claimBeside("a", "1", 1, 1, -40, -30)
	s.add(check.Event{What: check.Ordered, Job: "job", Op: string(order), Request: store.BackfillRequest(7), Sent: at(1.5), Time: at(1.5), Heard: at(1.6)})
	r := s.runBeside("a", 1.4, 2, -40)
	r.Cancelled, r.Cause, r.Note = at(1.9), "cancelled", "context canceled"
	for _, said := range []string{"run started", "the run may not begin: not run", "run ended"} {
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Tick: at(-30), Time: at(2.1), Note: said})
	}
	s.endBeside("a", "finish", "1", 2.5, -40, -30)
	s.request("a", "release", "1", 2.8, 200)
}

// cancelledFirst is a claim whose backfill is cancelled before it runs anything. It says that the two have ended.
func (s *story) cancelledFirst(order store.OrderKind) {
	s.twoAtOnce()
	s.add(check.Event{What: check.Ordered, Job: "job", Op: string(order), Request: store.BackfillRequest(7), Sent: at(1), Time: at(1), Heard: at(1.1)})
	s.claimBeside("a", "1", 1, 1, -40, -30)
	s.endBeside("a", "finish", "1", 2, -40, -30)
	for range 2 {
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(2), Note: "run ended"})
	}
	s.request("a", "release", "1", 2.8, 200)
}

// diesBeside is a claim of two, of which one returns and is written with how far the other one is, as the write for its end has failed,
// or has not. Their replica dies long after that.
func (s *story) diesBeside(failed bool) {
	s.emits()
	s.twoAtOnce()
	s.claimBeside("a", "1", 1, 1, -40, -30)
	s.runBeside("a", 1.4, 1.6, -30)
	if failed {
		s.request("a", "progress", "1", 1.7, 503)
	}
	s.endBeside("a", "progress", "1", 1.8, -30)
	s.runBeside("a", 1.4, 90, -40)
	for t := 6.0; t < 90; t += 5 {
		s.request("a", "renew", "1", t, 200)
	}
	s.say("a", 90, check.Crash)
}

// endTold tells that a tick of the last claim has ended.
func (s *story) endTold(replica string, t, tick float64) {
	s.emit(replica, t, event.Ended, store.Succeeded)
	s.Events[len(s.Events)-1].Tick = at(tick)
}

var _ = plant(stories{
	"": {
		func(s *story) { s.firstTwo(); s.theThird() },
		func(s *story) { s.progressBeside() },
		func(s *story) { s.diesBeside(true) },
		func(s *story) { s.cancelledFirst(store.OrderCancelBackfill) },
		func(s *story) { s.cancelledBetween(store.OrderCancelBackfill) },
		func(s *story) { s.emits(); s.firstTwo(); s.endTold("a", 1.9, -30); s.endTold("a", 2.6, -40) },
		func(s *story) { s.besideFailure(); s.stalledBeside(1.6) }, // the lease that they share is given up
		func(s *story) { s.besideFailure(); s.stalledBeside(7.5) },
	},
	"I7a patience": {func(s *story) { s.besideFailure() }, func(s *story) { s.besideFailure(); s.stalledBeside(8.9) }},
	"I16 audit": {
		func(s *story) { s.cancelledFirst(store.OrderPause) },
		func(s *story) { s.cancelledBetween(store.OrderPause) },
	},
	"I26 events": {
		func(s *story) { s.emits(); s.firstTwo(); s.endTold("a", 2.6, -40) },
		func(s *story) { s.diesBeside(false) },
		func(s *story) {
			s.emits()
			s.firstTwo()
			for _, tick := range []float64{-40, -30, -30} {
				s.endTold("a", 2.6, tick)
			}
		},
		func(s *story) { s.emits(); s.firstTwo(); s.endTold("a", 1.9, -30); s.endTold("b", 2.6, -40) },
		func(s *story) { // of a write that was not applied
			s.emits()
			s.twoAtOnce()
			s.claimBeside("a", "1", 1, 1, -40, -30)
			s.runBeside("a", 1.4, 1.6, -30)
			s.endTold("a", 1.9, -30)
		},
	},
	"I33 beside": {
		func(s *story) { s.twoAtOnce(); s.claimBeside("a", "1", 1, 1, -30, -20) }, // the first is left out
		func(s *story) { s.twoAtOnce(); s.claimBeside("a", "1", 1, 1, -40, -20) },
		func(s *story) { s.twoAtOnce(); s.claimBeside("a", "1", 1, 1, -40, -30, -20) },        // too many
		func(s *story) { s.firstTwo(); s.claimBeside("b", "2", 3, 2, -30) },                   // after its outcome
		func(s *story) { s.twoAtOnce(); s.claimBeside("a", "1", 1, 2, -40, -30) },             // it has had no first attempt
		func(s *story) { s.firstTwo(); s.theThird(); s.claimBeside("a", "3", 5, 1, -10, -0) }, // beyond the range
		func(s *story) { // it goes on
			s.twoAtOnce()
			s.claimBeside("a", "1", 1, 1, -40, -30)
			s.runBeside("a", 1.4, 3, -40)
			s.endBeside("a", "progress", "1", 1.8, -40)
		},
		func(s *story) { // an outcome too few
			s.twoAtOnce()
			s.claimBeside("a", "1", 1, 1, -40, -30)
			s.write("a", "finish", "1", 2, func(r *store.Record) {
				r.Run.Status, r.Run.Finished, r.Backfill.Open = store.Succeeded, at(2), nil
				r.Backfill.Counts = map[store.Status]int64{store.Succeeded: 1}
			})
		},
		func(s *story) { // it begins once more, a while after a suspension
			s.firstTwo()
			s.freeze(2.1, 2.4)
			r := s.runBeside("a", 5, 5.2, -30)
			r.Cancelled, r.Cause = at(5.1), store.ErrLost.Error()
		},
		func(s *story) { // it begins once more
			s.firstTwo()
			s.runBeside("a", 2.6, 2.7, -30)
		},
	},
})

var _ = plant(stories{
	"I8 fresh": {func(s *story) {
		// a tick of a backfill
		s.backfill()
		s.say("a", 0.8, check.Stop)
		s.say("a", 5, check.Gone)
		s.fillClaim("a", "1", 0.7, -40, 1)
		s.run("a", 1.4, 2).Request = s.last.Run.Request
	}},
})
