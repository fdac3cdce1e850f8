package check_test

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// follows has the job follow another one, of which before tells.
func (s *story) follows(any bool, before func(s *story)) {
	other := newStory()
	before(other)
	for _, e := range other.Events {
		if e.Job == "job" {
			e.Job = "before"
			s.Events = append(s.Events, e)
		}
	}
	for name := range s.Fleet {
		s.Fleet[name] = []check.Definition{{Name: "before", Every: 10 * time.Second, Lease: lease}, {Name: "job", Every: 10 * time.Second, Lease: lease, Follows: "before", FollowsAny: any}}
	}
}

// runLater is a run of the job for a tick that is claimed after it.
func (s *story) runLater(tick, claim float64) {
	s.acquire("b", "late", claim-0.5)
	s.claim("b", "late", claim, tick)
	s.run("b", claim+0.5, claim+1)
	s.finish("b", "late", claim+1.5, store.Succeeded)
	s.request("b", "release", "late", claim+2, 200)
}

// startsBy has the job start within five seconds after the one before, and starts it at a time.
func (s *story) startsBy(t float64) {
	s.follows(false, func(s *story) { s.tick("a", "1", 10) })
	for _, d := range s.Fleet {
		d[1].StartingDeadline = 5 * time.Second
	}
	s.runLater(10, t)
}

// skip has the job skip a tick for a reason.
func (s *story) skip(t float64, f store.Outcome) {
	s.acquire("b", "skip", t-0.5)
	s.write("b", "settle", "skip", t, func(r *store.Record) { r.History, r.Watermark = append([]store.Outcome{f}, r.History...), f.Tick })
	s.request("b", "release", "skip", t+0.5, 200)
}

// failing is a tick of the job that fails, from its tick on.
func (s *story) failing(tick float64) {
	s.hold("a", "1", tick)
	s.run("a", tick+1, tick+3).Note = "failed"
	s.finish("a", "1", tick+3.5, store.Failed)
	s.request("a", "release", "1", tick+4, 200)
}

var _ = plant(stories{
	"": {
		func(s *story) { s.follows(false, func(s *story) { s.tick("a", "1", 10) }); s.runLater(10, 15) },
		func(s *story) { s.startsBy(20.2) }, // the clocks of both replicas are off by a second
		func(s *story) { s.follows(true, func(s *story) { s.failing(10) }); s.runLater(10, 15) },
		func(s *story) {
			s.follows(false, func(s *story) { s.failing(10) })
			s.skip(15, store.Outcome{Tick: at(10), Status: store.Skipped, Reason: "before failed"})
		},
	},
	"I20 deadline": {func(s *story) { s.startsBy(21.5) }},
	"I27 after": {
		func(s *story) { s.follows(false, func(s *story) {}); s.runLater(10, 15) },
		func(s *story) { s.follows(true, func(s *story) {}); s.runLater(10, 15) },
		func(s *story) { s.follows(false, func(s *story) { s.failing(10) }); s.runLater(10, 15) },
		func(s *story) { s.follows(false, func(s *story) { s.tick("a", "1", 10) }); s.runLater(10, 12) }, // while it runs
		func(s *story) { s.follows(false, func(s *story) { s.tick("a", "1", 10) }); s.runLater(20, 25) }, // of another tick
		func(s *story) {
			s.follows(false, func(s *story) { s.hold("a", "1", 10); s.run("a", 11, 13) })
			s.runLater(10, 15)
		}, // before its outcome is written
		func(s *story) { // a run by hand
			s.follows(false, func(s *story) {
				s.hold("a", "1", 10).Record.Run.Request = "wish"
				s.run("a", 11, 13).Request = "wish"
				s.finish("a", "1", 13.5, store.Succeeded)
			})
			s.runLater(10, 15)
		},
	},
	"I19 reason": {
		func(s *story) {
			s.follows(false, func(s *story) { s.tick("a", "1", 10) })
			s.skip(15, store.Outcome{Tick: at(10), Status: store.Skipped, Reason: "before failed"})
		},
		func(s *story) {
			s.follows(false, func(s *story) { s.tick("a", "1", 10) })
			s.skip(15, store.Outcome{Tick: at(10), Status: store.Missed, Reason: "the outcome of before is not known"})
		},
	},
})

var _ = plant(stories{
	"I20 deadline": {func(s *story) {
		// it was too late by far when its machine was suspended
		s.acquire("a", "1", 59)
		s.freeze(59.9, 60.3)
		s.claim("a", "1", 60.4, 10)
	}},
})
