package check_test

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// backfill orders that the three ticks from 40 to 20 seconds before midnight are run again.
func (s *story) backfill() {
	s.add(check.Event{What: check.Ordered, Job: "job", Op: string(store.OrderBackfill), Request: store.BackfillRequest(7), Sent: at(0.5), Time: at(0.5), Heard: at(0.6),
		Spans: []store.Span{{From: at(-40).Add(-1), To: at(-20)}}})
}

// fillClaim claims a tick of the backfill.
func (s *story) fillClaim(replica, id string, t, tick float64, attempt int) {
	s.acquire(replica, id, t)
	s.write(replica, "claim", id, t+0.2, func(r *store.Record) {
		r.Token, r.Run.Tick, r.Run.Attempt, r.Run.Status, r.Run.Finished = r.Token+1, at(tick), attempt, store.Running, time.Time{}
		r.Run.Request, r.Run.Order = store.BackfillRequest(7), 7
		r.Backfill.Seq, r.Backfill.Through, r.Backfill.Attempt = 7, at(tick), 0
	})
}

// fill is all of a tick of the backfill, in two seconds, with what the end writes beside it.
func (s *story) fill(replica, id string, t, tick float64, also func(*store.Record)) {
	s.fillClaim(replica, id, t, tick, 1)
	s.run(replica, t+0.4, t+1).Request = s.last.Run.Request
	s.write(replica, "finish", id, t+1.5, func(r *store.Record) {
		r.Run.Status, r.Run.Finished = store.Succeeded, at(t+1.5)
		r.Backfill.Counts = map[store.Status]int64{store.Succeeded: r.Backfill.Counts[store.Succeeded] + 1}
		if also != nil {
			also(r)
		}
	})
	s.request(replica, "release", id, t+1.8, 200)
}

// fills is the whole backfill.
func (s *story) fills() {
	s.backfill()
	s.fill("a", "1", 1, -40, nil)
	s.fill("b", "2", 3, -30, nil)
	s.fill("a", "3", 5, -20, nil)
}

// cancelledFill is a tick of the backfill that is claimed, and an order that ends the backfill before its run begins.
func (s *story) cancelledFill(order store.OrderKind, request string) {
	s.backfill()
	s.add(check.Event{What: check.Ordered, Job: "job", Op: string(order), Request: request, Sent: at(1), Time: at(1), Heard: at(1.1)})
	s.fillClaim("a", "1", 1, -40, 1)
	s.write("a", "finish", "1", 2, func(r *store.Record) {
		r.Run.Status, r.Run.Finished = store.Cancelled, at(2)
	})
	s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(2), Note: "run ended"})
	s.request("a", "release", "1", 2.8, 200)
}

var _ = plant(stories{
	"": {
		func(s *story) { s.fills() },
		func(s *story) { s.cancelledFill(store.OrderCancelBackfill, store.BackfillRequest(7)) },
		func(s *story) { s.cancelledFill(store.OrderCancelBackfill, "") }, // it got no answer
	},
	"I16 audit": {
		func(s *story) { s.cancelledFill(store.OrderCancelBackfill, store.BackfillRequest(6)) },
		func(s *story) { s.cancelledFill(store.OrderPause, store.BackfillRequest(7)) },
	},
	"I33 in order": {
		func(s *story) { s.backfill(); s.fill("a", "1", 1, -30, nil) }, // the first is left out
		func(s *story) { s.backfill(); s.fill("a", "1", 1, -40, nil); s.fill("a", "2", 3, -20, nil) },
		func(s *story) { s.fills(); s.fill("b", "4", 7, -20, nil) },                                      // again
		func(s *story) { s.fills(); s.fill("b", "4", 7, -10, nil) },                                      // beyond the range
		func(s *story) { s.backfill(); s.fill("a", "1", 1, -40, nil); s.fillClaim("b", "2", 3, -40, 2) }, // after its outcome
		func(s *story) { s.backfill(); s.fillClaim("a", "1", 1, -40, 2) },
	},
	"I33 aside": {
		func(s *story) {
			s.backfill()
			s.fill("a", "1", 1, -40, func(r *store.Record) { r.Watermark = at(10) })
		},
		func(s *story) { s.backfill(); s.fill("a", "1", 15, -40, nil) }, // a tick is due
		func(s *story) {
			s.backfill()
			s.add(check.Event{What: check.Ordered, Job: "job", Op: string(store.OrderCancelBackfill), Request: store.BackfillRequest(7), Sent: at(1), Time: at(1), Heard: at(1)})
			s.tick("b", "0", 10)
			s.fill("a", "1", 15, -40, nil)
		},
	},
	"I33 whole": {
		func(s *story) {
			s.backfill()
			s.fill("a", "1", 1, -40, nil)
			s.say("", 8, check.Healed).Replica = ""
		},
	},
})

var _ = plant(stories{
	"I1 belief": {func(s *story) {
		// the entry was deleted under a run, and b knew it
		s.backfill()
		s.begin("a", "1", 10, 11, 20)
		s.request("b", "read", "", 12, 200)
		s.deleted(13)
		s.write("b", "create", "", 13.5, func(r *store.Record) {
			*r = store.Record{Token: 1000, Run: store.Run{Status: store.Idle, Lease: store.Seconds(lease)}, Watermark: at(10), Created: at(13.5)}
		})
		s.fillClaim("b", "2", 14, -40, 1)
		s.run("b", 15, 16).Request = s.last.Run.Request
	}},
})

var _ = plant(stories{
	"I33 whole": {func(s *story) {
		// another backfill was cancelled
		s.backfill()
		s.fill("a", "1", 1, -40, nil)
		s.add(check.Event{What: check.Ordered, Job: "job", Op: string(store.OrderCancelBackfill), Request: store.BackfillRequest(8), Sent: at(3), Time: at(3), Heard: at(3.1)})
		s.say("", 8, check.Healed).Replica = ""
	}},
})
