package check_test

import (
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// finishBy says by when the ticks of the job have to have succeeded.
func (s *story) finishBy(d time.Duration) {
	s.Emits = true
	for _, of := range s.Fleet {
		of[0].FinishBy = d
	}
}

// fails is a tick of a that fails.
func (s *story) fails(id string, tick float64) {
	r := s.begin("a", id, tick, tick+1, tick+3)
	r.Note = "failed"
	s.finish("a", id, tick+3.5, store.Failed)
	s.emit("a", tick+3.6, event.Ended, store.Failed)
	s.request("a", "release", id, tick+4, 200)
}

// tells is a write of a replica, and its event that a tick is late.
func (s *story) tells(replica string, t, tick float64) {
	s.acquire(replica, "9"+replica, t-0.5)
	s.write(replica, "settle", "9"+replica, t-0.05, func(*store.Record) {})
	s.add(check.Event{What: check.Emitted, Replica: replica, Job: "job", Time: at(t), Op: string(event.Late), Tick: at(tick)})
	s.request(replica, "release", "9"+replica, t+0.1, 200)
}

// tellsTwice is two writes that tell of one late tick each.
func (s *story) tellsTwice(again float64) {
	s.finishBy(20 * time.Second)
	s.fails("1", 10)
	s.fails("2", 20)
	s.tells("a", 31, 10)
	s.tells("b", again, 20)
}

// toldAgain is a tick that a tells, and then b too, in no write that was answered, after it was suspended until a time.
func (s *story) toldAgain(again, until float64) {
	s.finishBy(20 * time.Second)
	s.fails("1", 10)
	s.tells("a", 31, 10)
	s.Events = append(s.Events, &check.Event{Time: at(32), End: at(until), What: check.Freeze, Replica: "b"},
		&check.Event{What: check.Emitted, Replica: "b", Job: "job", Time: at(again), Op: string(event.Late), Tick: at(10)})
}

// inTimeAndTold is a tick that a has run in time, and that b tells after a write without an answer; unless it is cut off,
// it has read the entry since.
func (s *story) inTimeAndTold(cutOff bool) {
	s.tick("a", "1", 10)
	s.emit("a", 13.6, event.Ended, store.Succeeded)
	w := s.request("b", "finish", "9", 25, 0)
	w.Record, w.Heard = &store.Record{Token: 1}, time.Time{}
	if !cutOff {
		s.request("b", "read", "", 28, 200)
	}
	s.add(check.Event{What: check.Emitted, Replica: "b", Job: "job", Time: at(31), Op: string(event.Late), Tick: at(10)})
}

var _ = plant(stories{
	"": {
		func(s *story) { s.finishBy(20 * time.Second); s.fails("1", 10); s.tells("a", 31, 10) },
		func(s *story) { s.tellsTwice(91.5) },
		func(s *story) { // who is cut off tells what its last write says
			s.finishBy(20 * time.Second)
			s.inTimeAndTold(true)
		},
		func(s *story) { s.toldAgain(33, 40) }, // the time of its write was up while it was suspended
		func(s *story) { // it could not read what had become of its write
			s.toldAgain(33, 32.9)
			s.request("b", "read", "", 32.7, 0).Heard = time.Time{}
		},
		func(s *story) { // nor had it asked, when the answer to its release came late
			s.toldAgain(43, 32.9)
			w := s.request("b", "settle", "9", 25, 0)
			w.Record, w.Heard = &store.Record{Token: 1}, time.Time{}
			s.request("b", "release", "9", 42, 409)
		},
	},
	"I31 late": {
		func(s *story) { s.finishBy(20 * time.Second); s.fails("1", 10); s.tells("a", 20, 10) }, // too early
		func(s *story) { s.fails("1", 10); s.Emits = true; s.tells("a", 31, 10) },               // nothing says by when
		func(s *story) {
			s.finishBy(20 * time.Second)
			s.fails("1", 10)
			s.tells("a", 31, 10)
			s.tells("b", 33, 10)
		},
		func(s *story) { s.toldAgain(33, 32.9) },
		func(s *story) { // it has read the entry since
			s.toldAgain(43, 32.9)
			w := s.request("b", "settle", "9", 25, 0)
			w.Record, w.Heard = &store.Record{Token: 1}, time.Time{}
			s.request("b", "read", "", 38, 200)
		},
		func(s *story) { s.tellsTwice(45) }, // in two writes that are near to each other
		func(s *story) { s.finishBy(20 * time.Second); s.inTimeAndTold(false) },
		func(s *story) { // it has succeeded
			s.finishBy(20 * time.Second)
			s.tick("a", "1", 10)
			s.emit("a", 13.6, event.Ended, store.Succeeded)
			s.tells("a", 31, 10)
		},
		func(s *story) { // nobody tells
			s.finishBy(20 * time.Second)
			s.fails("1", 10)
			s.say("", 35, check.Healed).Replica = ""
			s.say("a", 600, check.Said)
		},
	},
})

var _ = plant(stories{
	"I19 reason": {func(s *story) {
		// an order comes later, and gets no answer
		s.begin("a", "1", 10, 11, 12).Note = "failed"
		s.finish("a", "1", 13, store.Cancelled).Record.History[0].Reason = "by " + check.Orderer
		s.order(store.OrderCancel, 300, 301).Heard = time.Time{}
	}},
})
