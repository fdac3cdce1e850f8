package check_test

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// overlaps gives the job a policy, and another period.
func (s *story) overlaps(policy soloist.OverlapPolicy, every time.Duration) {
	for _, d := range s.Fleet {
		d[0].Overlap, d[0].Every = policy, every
	}
}

// lasting is one of a tick from 0.5 s after it up to end, with its outcome.
func (s *story) lasting(replica, id string, tick, end float64, status store.Status) *check.Event {
	s.hold(replica, id, tick)
	r := s.run(replica, tick+0.6, end)
	for t := tick + 5; t < end; t += 5 {
		s.request(replica, "renew", id, t, 200)
	}
	s.finish(replica, id, end+0.1, status)
	s.request(replica, "release", id, end+0.2, 200)
	return r
}

// replaced is a run whose context ends at a time, and that then returns.
func (s *story) replaced(replica, id string, tick, end float64) *check.Event {
	r := s.lasting(replica, id, tick, end, store.Cancelled)
	r.Cancelled, r.Cause, r.Note = at(end-0.05), soloist.ErrReplaced.Error(), "context canceled"
	s.Events[len(s.Events)-2].Record.History[0].Reason = "replaced by the tick of 2026-11-21T00:00:20Z"
	return r
}

// waits runs a tick that came due before, and settles those between.
func (s *story) waits(replica, id string, tick, start float64) {
	s.acquire(replica, id, start-0.5)
	s.claim(replica, id, start-0.3, tick)
	s.run(replica, start, start+1)
	s.finish(replica, id, start+1.1, store.Succeeded)
}

// overlapped settles ticks at the end of the run before.
func (s *story) overlapped(tick float64) {
	last := s.Events[len(s.Events)-2].Record
	last.History = append([]store.Outcome{{Tick: at(tick), Status: store.Skipped, Reason: "overlap"}}, last.History...)
	last.Watermark = at(tick)
	s.last = *last
}

// stoppedBetweenTries is a run under which a tick comes due and that has failed; its replica is asked to stop at a time, and
// the tick is run.
func (s *story) stoppedBetweenTries(stop float64) {
	s.overlaps(soloist.SkipOverlap, 10*time.Second)
	s.lasting("a", "1", 10, 22, store.Failed).Note = "failed"
	s.Events = append(s.Events, &check.Event{Time: at(stop), What: check.Stop, Replica: "a", End: at(40)})
	s.waits("b", "2", 20, 24)
	s.say("a", 26, check.Gone)
}

// yieldsBetweenTries is a run under which a tick comes due and that has failed; its replica is asked to step down at a time, and
// the tick is run.
func (s *story) yieldsBetweenTries(asked float64) {
	s.overlaps(soloist.SkipOverlap, 10*time.Second)
	s.lasting("a", "1", 10, 22, store.Failed).Note = "failed"
	s.order(store.OrderStepDown, asked, asked+0.02)
	s.waits("b", "2", 20, 24)
}

// returnsLost is a run under which a tick comes due and that returns an error, and the tick is run.
func (s *story) returnsLost(err string) {
	s.lasting("a", "1", 10, 22, store.Abandoned).Note = err
	s.Events[len(s.Events)-2].Record.History[0].Reason = store.ErrLost.Error()
	s.waits("b", "2", 20, 24)
}

var _ = plant(stories{
	"": {
		func(s *story) {
			s.overlaps(soloist.QueueOne, 10*time.Second)
			s.lasting("a", "1", 10, 37, store.Succeeded)
			s.overlapped(20)
			s.waits("b", "2", 30, 38)
		},
		func(s *story) {
			s.overlaps(soloist.Replace, 10*time.Second)
			s.replaced("a", "1", 10, 20.1)
			s.waits("a", "2", 20, 21)
		},
		func(s *story) { s.stoppedBetweenTries(22.05) },
		func(s *story) { s.yieldsBetweenTries(22.05) },
		func(s *story) { s.returnsLost(store.ErrLost.Error() + ": a checkpoint was not written") },
		func(s *story) { // between two tries, of which the first has taken too long
			s.overlaps(soloist.Replace, 10*time.Second)
			r := ran{s.replaced("a", "1", 10, 21)}
			r.timeOut(15)
			s.waits("a", "2", 20, 22)
		},
	},
	"I30 waiting": {
		func(s *story) { s.stoppedBetweenTries(22.7) }, // after its outcome
		func(s *story) { s.yieldsBetweenTries(22.7) },
		func(s *story) { s.returnsLost("failed") },
		func(s *story) {
			s.lasting("a", "1", 10, 37, store.Succeeded)
			s.overlapped(20)
			s.waits("b", "2", 30, 38)
		},
		func(s *story) {
			s.overlaps(soloist.QueueOne, 10*time.Second)
			s.lasting("a", "1", 10, 37, store.Succeeded)
			s.waits("b", "2", 20, 38)
		},
	},
	"I30 waited": {func(s *story) {
		s.overlaps(soloist.QueueOne, 100*time.Second)
		s.lasting("a", "1", 100, 230, store.Succeeded)
		s.tick("a", "2", 300)
	}},
	"I30 replaced": {
		func(s *story) { // its context lives on
			s.overlaps(soloist.Replace, 10*time.Second)
			s.lasting("a", "1", 10, 37, store.Succeeded)
		},
		func(s *story) { // under another policy
			s.overlaps(soloist.QueueOne, 10*time.Second)
			s.replaced("a", "1", 10, 20.1)
		},
		func(s *story) { // too early
			s.overlaps(soloist.Replace, 10*time.Second)
			s.replaced("a", "1", 10, 15)
		},
		func(s *story) { // its replica starts nothing
			s.overlaps(soloist.Replace, 10*time.Second)
			s.replaced("a", "1", 10, 20.1)
			s.Events = append(s.Events, &check.Event{Time: at(15), What: check.Stop, Replica: "a", End: at(40)})
		},
		func(s *story) { // it is run again
			s.overlaps(soloist.Replace, 10*time.Second)
			s.replaced("a", "1", 10, 20.1)
			s.waits("b", "2", 10, 21)
		},
		func(s *story) { // the next run does not wait for its return
			s.overlaps(soloist.Replace, 10*time.Second)
			s.replaced("a", "1", 10, 25).Cancelled = at(20.1)
			s.waits("a", "2", 20, 22)
		},
	},
})

var _ = plant(stories{
	"I2a claim": {func(s *story) {
		// another replica has claimed it
		s.hold("b", "1", 10)
		s.run("a", 11, 12)
	}},
})

var _ = plant(stories{
	"I19 reason": {func(s *story) {
		// it has returned well, and nothing could say that it stalls
		s.begin("a", "1", 10, 11, 12)
		s.finish("a", "1", 13, store.Stalled)
	}},
})
