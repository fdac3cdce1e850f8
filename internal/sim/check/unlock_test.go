package check_test

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// Runs that an operator has ended, what is said of corrupted
// entries, and runs that say that they are handed over.
var _ = plant(stories{
	"": {
		func(s *story) {
			s.unlock("waiting after unlock", 35)
			s.settledBy("unlocked by ann@desk, and the starting deadline has passed")
		},
		func(s *story) { s.fared("broken") },
		// A singleton whose outcome was written, which its replica does not learn.
		func(s *story) {
			s.Fleet["a"][0].Every, s.Fleet["a"][0].Backoff = 0, time.Minute
			s.Fleet["b"][0].Every, s.Fleet["b"][0].Backoff = 0, time.Minute
			s.begin("a", "1", 10, 11, 12).Note = "failed"
			s.finish("a", "1", 12.5, store.Failed)
			s.request("operator", "break", "", 13, 202)
			for _, e := range s.Events {
				if e.Note == "run ended" {
					e.Note, e.Time = "the outcome was refused: a replica settles this run", at(14)
				}
			}
			s.begin("a", "2", 20, 21, 22)
		},
		func(s *story) { s.Fleet["a"][0].HeartbeatTimeout = 8 * time.Second; s.hands() },
		func(s *story) {
			s.Fleet["a"][0].HeartbeatTimeout = time.Second
			s.say("a", 12, check.Stop)
			s.say("a", 16, check.Gone)
			s.hands()
		},
	},
	"I7c announced": {func(s *story) { s.Fleet["a"][0].HeartbeatTimeout = 2 * time.Second; s.hands() }},
	"I14 spoilt":    {func(s *story) { s.corrupted("last token", 5, 200, nil); s.acquire("a", "1", 10) }},
	"I14 health":    {func(s *story) { s.fared("well") }},
	"I16 unlocked": {
		func(s *story) { s.unlock("running", 0) },
		func(s *story) { s.unlock("waiting after unlock", 15) },
		func(s *story) { s.unlock("waiting after unlock", 400) },
		func(s *story) { s.unlock("waiting after unlock", 35); s.settledBy("its runner died") },
		func(s *story) { s.unlock("waiting after unlock", 35); s.settledBy("unlocked") },
		func(s *story) { s.gaveUp("unlocked by ann@desk") },
	},
	"I16 looked": {
		func(s *story) { s.look(10.6, 10.9, func(r *store.Record) { r.Writer = "another" }) },
		func(s *story) { s.look(16, 16.1, func(*store.Record) {}) }, // the run has ended by then
		func(s *story) {
			s.begin("a", "1", 10, 11, 14)
			s.add(check.Event{What: check.Listed, Replica: "operator", Job: "job", Time: at(13), Sent: at(12), Heard: at(13)})
		},
	},
	"I16 lines": {func(s *story) {
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(12), Note: "not run to its end", Cause: "tick=0001-01-01T00:00:00Z "})
	}},
})

// unlock is a run whose lease an operator ends at 13, and what a status says then.
func (s *story) unlock(status string, until float64) {
	s.begin("a", "1", 10, 11, 14).cancelled(13.9, soloist.ErrLost)
	s.request("operator", "break", "", 13, 202)
	s.request("operator", "acquire", "9", 13.2, 201).Span = lease
	s.write("operator", "write", "9", 13.4, func(r *store.Record) { r.Run.Unlocked = store.Unlocked{By: "ann@desk", At: at(13.2)} })
	s.request("operator", "release", "9", 13.6, 200)
	s.request("operator", "read", "", 14, 200)
	s.add(check.Event{What: check.Unlocked, Replica: "ann@desk", Job: "job", Token: s.last.Token, Time: at(12.9), Sent: at(13.8), Heard: at(14.2), Note: status, End: at(until)})
}

// look is a run, and a status that says what its claim wrote, but for a change.
func (s *story) look(asked, heard float64, change func(*store.Record)) {
	s.begin("a", "1", 10, 11, 14)
	r := s.last.Clone()
	change(&r)
	s.finish("a", "1", 15, store.Succeeded)
	s.add(check.Event{What: check.Listed, Replica: "operator", Job: "job", Time: at(heard), Sent: at(asked), Heard: at(heard), Record: &r})
}

// settledBy is what another replica writes of that run.
func (s *story) settledBy(reason string) {
	s.acquire("b", "2", 30)
	s.settle("b", "2", 30.5, store.Outcome{Tick: at(10), Status: store.Abandoned, Reason: reason, Token: s.last.Token})
	s.request("b", "release", "2", 31, 200)
}

// fared is what the Health of a replica says that has logged that an entry is
// spoilt.
func (s *story) fared(says string) {
	s.corrupted("since 9999", 5, 300, nil)
	s.request("a", "read", "", 10, 200)
	s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(11), Note: "the job is left alone"})
	s.add(check.Event{What: check.Fared, Replica: "a", Job: "job", Time: at(200), Note: says})
}

// hands is a run that says that it is about to be handed over.
func (s *story) hands() {
	s.begin("a", "1", 10, 11, 14)
	s.write("a", "progress", "1", 13, func(r *store.Record) { r.Run.Stopping = true })
	s.finish("a", "1", 15, store.Succeeded)
}

var _ = plant(stories{
	"I19 reason": {func(s *story) {
		// another replica says that it has stalled, and its own has died
		s.crash()
		for _, d := range s.Fleet {
			d[0].Interrupted = soloist.Abandon
		}
		s.acquire("b", "2", 120)
		s.settle("b", "2", 120.5, store.Outcome{Tick: at(90), Status: store.Stalled, Token: s.last.Token})
	}},
})
