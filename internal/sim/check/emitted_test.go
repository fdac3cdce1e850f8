package check_test

import (
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

var _ = plant(stories{
	"": {
		func(s *story) { s.emits(); s.tick("a", "1", 10); s.emit("a", 13.6, event.Ended, store.Succeeded) },
		func(s *story) { // its answer was lost, and its replica says so
			s.emits()
			s.tick("a", "1", 10)
			s.emit("a", 13.6, event.Unrecorded, store.Succeeded)
		},
		func(s *story) { // killed before it could tell
			s.emits()
			s.tick("a", "1", 10)
			s.say("a", 13.55, check.Crash)
		},
		func(s *story) { s.killedAfterSuspension(130) },
		func(s *story) { // another replica may run the tick again, so it has no outcome yet
			s.emits()
			s.reruns()
			s.stopped(13.5)
			s.emit("a", 13.6, event.Ended, store.Abandoned)
		},
	},
	"I26 events": {
		func(s *story) { s.killedAfterSuspension(170) },
		func(s *story) { s.emits(); s.tick("a", "1", 10) },
		func(s *story) { s.emits(); s.reruns(); s.stopped(13.5) },
		func(s *story) { // twice
			s.emits()
			s.tick("a", "1", 10)
			s.emit("a", 13.6, event.Ended, store.Succeeded)
			s.emit("a", 13.7, event.Ended, store.Succeeded)
		},
		func(s *story) { // another outcome
			s.emits()
			s.tick("a", "1", 10)
			s.emit("a", 13.6, event.Ended, store.Failed)
		},
		func(s *story) { // of the other replica
			s.emits()
			s.tick("a", "1", 10)
			s.emit("b", 13.6, event.Ended, store.Succeeded)
		},
		func(s *story) { // of a write that was not applied
			s.emits()
			s.begin("a", "1", 10, 11, 13)
			s.emit("a", 13.6, event.Ended, store.Succeeded)
		},
		func(s *story) { // as if another replica had run it
			s.emits()
			s.tick("a", "1", 10)
			s.emit("a", 13.6, event.Settled, store.Succeeded)
		},
	},
})

// emits makes a story one whose log has what replicas emit.
func (s *story) emits() { s.Emits = true }

// killedAfterSuspension is a tick whose replica is suspended when its outcome is written, goes on at 100, and is killed at a time
// without having told of it.
func (s *story) killedAfterSuspension(killed float64) {
	s.emits()
	s.begin("a", "1", 10, 11, 13)
	s.finish("a", "1", 13.5, store.Succeeded)
	s.freeze(13.551, 100)
	s.say("a", killed, check.Crash)
}

// emit is an event about the last run.
func (s *story) emit(replica string, t float64, kind event.Kind, status store.Status) {
	s.add(check.Event{What: check.Emitted, Replica: replica, Job: "job", Time: at(t), Op: string(kind), Token: s.last.Token, Tick: s.last.Run.Tick, Note: string(status)})
}

// stopped is a run of a that a stop has ended.
func (s *story) stopped(t float64) {
	s.begin("a", "1", t-3.5, t-2.5, t-0.5)
	s.write("a", "finish", "1", t, func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Abandoned, at(t) })
	s.request("a", "release", "1", t+0.5, 200)
}

var _ = plant(stories{
	"I18 pending": {func(s *story) {
		// a run was ordered, and no message is there that was put for it; one before it could not be put
		s.mail("a", "1", check.MailPut, 80, 3540)
		s.atZero()
		s.add(check.Event{What: check.Rung, Job: "job", Time: at(20), Note: "refused"})
		s.order(store.OrderRun, 50, 51)
		s.add(check.Event{What: check.Rung, Job: "job", Time: at(52)})
		s.wakes("c", 3570)
	}},
})
