package check_test

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// A record tells when a run began and ended, and how many ticks a range has.
var _ = plant(stories{
	"": {
		func(s *story) { s.stalls(at(31.5)) },
		func(s *story) { s.silentUnder(12, 18) },
		func(s *story) { s.silentUnder(12, 18.1) },
		func(s *story) { s.stepsWhileTold(11.2) },
		func(s *story) { s.misses(100_000, 100_000, false) },
		func(s *story) { s.misses(100_001, 100_000, true) },
		// A further try was to begin while the machine was suspended. The checks of HealthCheck
		// that came due meanwhile count, and it stalls as it begins.
		func(s *story) {
			d := &s.Fleet["a"][0]
			d.Pulse, d.HealthInterval, d.FailureThreshold = check.Weak, 2*time.Second, 2
			s.begin("a", "1", 10, 11, 12).Note = "failed"
			s.Events = slices.DeleteFunc(s.Events, func(e *check.Event) bool { return e.Note == "run ended" }) // the further try says it
			s.freeze(12.5, 18)
			r := ran{s.run("a", 18.001, 18.01)}
			r.Try = 2
			r.cancelled(18.001, soloist.ErrStalled)
		},
	},
	"I3 span": {
		func(s *story) { s.begin("a", "1", 10, 11, 13); s.finish("a", "1", 20, store.Succeeded) }, // its end is that of a wait
		func(s *story) { s.stalls(time.Time{}) },
		func(s *story) { s.stalls(at(22)) },
		func(s *story) { s.stalls(at(45)) },
		func(s *story) {
			s.begin("a", "1", 10, 11, 13)
			s.last.Run.Claimed = at(20)
			s.finish("a", "1", 13.5, store.Succeeded)
		},
		func(s *story) {
			s.tick("a", "1", 10)
			s.acquire("b", "2", 20)
			s.write("b", "claim", "2", 20.5, func(r *store.Record) {
				r.Token, r.Run.Tick, r.Run.Status, r.Run.Claimed, r.Run.Finished = r.Token+1, at(20), store.Running, at(20.5), time.Time{}
				r.History[0].End = time.Time{}
			})
		},
	},
	"I19 reason": {
		func(s *story) { s.silentUnder(16, 18) },   // for less than it may
		func(s *story) { s.stepsWhileTold(16) },    // likewise
		func(s *story) { s.silentUnder(12, 19.2) }, // by then the replica had noticed it
	},
	"I3 ledger": {
		func(s *story) { s.misses(100_001, 100_000, false) },
		func(s *story) { s.misses(100_000, 100_000, true) },
		func(s *story) { s.misses(7, 5, true) },
	},
})

// silentUnder is a run that is told as stalled. Its machine is suspended from a time until 18, and it makes its last step after that.
func (s *story) silentUnder(suspended, step float64) {
	s.Fleet["a"][0].HeartbeatTimeout = 5 * time.Second
	s.begin("a", "1", 10, 11, step+0.1).Beat = at(step)
	s.effect(s.last.Token, suspended-0.1, "accepted")
	s.freeze(suspended, 18)
	s.finish("a", "1", step+0.3, store.Stalled)
}

// stepsWhileTold is a run that is told as stalled at 19.5. It had an effect at a time before, and makes its last step at 19.8, before
// its context ends.
func (s *story) stepsWhileTold(effect float64) {
	s.Fleet["a"][0].HeartbeatTimeout = 5 * time.Second
	s.begin("a", "1", 10, 11, 20).Beat = at(19.8)
	s.effect(s.last.Token, effect, "accepted")
	s.request("a", "renew", "1", 15, 200)
	s.finish("a", "1", 19.5, store.Stalled)
	s.Events[len(s.Events)-1].Op = "progress"
}

// stalls is a run that stalls and returns at 31. A tick came due under it, so its
// outcome, which tells end, is not the newest.
func (s *story) stalls(end time.Time) {
	s.begin("a", "1", 10, 11, 31).cancelled(22, soloist.ErrStalled)
	s.write("a", "progress", "1", 22.5, func(r *store.Record) {
		r.Run.Status, r.Run.Stopping, r.Watermark = store.Stalled, true, at(20)
		r.History = append([]store.Outcome{{Tick: at(20), Status: store.Skipped, Reason: "overlap"},
			{Tick: at(10), Status: store.Stalled, Token: r.Token, Attempt: 1, Start: r.Run.Claimed}}, r.History...)
	})
	s.request("a", "renew", "1", 16, 200)
	s.request("a", "renew", "1", 22, 200)
	s.request("a", "renew", "1", 28, 200)
	s.write("a", "finish", "1", 31.5, func(r *store.Record) {
		r.Run.Stopping, r.Run.Finished = false, at(31.5)
		r.History[1].End = end
	})
	s.add(check.Event{What: check.Overran, Replica: "a", Job: "job", Time: at(24.5)})
}

// misses is a range of n ticks, of which the record counts some.
func (s *story) misses(n, count int, atLeast bool) {
	for _, d := range s.Fleet {
		d[0].Every = time.Second
	}
	t := float64(n) + 1
	s.add(check.Event{What: check.Down, Time: at(1), End: at(t - 0.5)})
	s.acquire("a", "1", t)
	s.write("a", "settle", "1", t+0.5, func(r *store.Record) {
		r.Watermark = at(float64(n))
		r.History = append([]store.Outcome{{From: at(0), Tick: at(float64(n)), Count: count, AtLeast: atLeast, Status: store.Missed, Reason: "a newer one was due"}}, r.History...)
	})
}

var _ = plant(stories{
	"I19 reason": {func(s *story) {
		// a tick whose runner died is told as one that nobody had
		s.crash()
		s.acquire("b", "2", 120)
		s.settle("b", "2", 120.5, store.Outcome{From: at(80), Tick: at(110), Count: 3, Status: store.Missed, Reason: "a newer one was due"})
	}},
})

var _ = plant(stories{
	"I3 ledger": {func(s *story) {
		// a range does not say how many ticks it has
		s.acquire("a", "1", 41)
		s.settle("a", "1", 41.5, store.Outcome{From: at(0), Tick: at(30), Status: store.Missed, Reason: "a newer one was due"})
	}},
})
