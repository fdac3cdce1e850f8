package check_test

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// Ticks that are claimed ahead, and leases that are acquired ahead of a tick.
var _ = plant(stories{
	"": {
		func(s *story) { s.leftToExpire(9) },
		func(s *story) { // all goes well
			s.arm("a", "1", 10, 8.5)
			s.run("a", 10.01, 11)
			s.finish("a", "1", 11.2, store.Succeeded)
			s.request("a", "release", "1", 11.4, 200)
		},
		func(s *story) { // the answer to its acquisition came too late, so it was sent again under its id
			s.acquire("a", "1", 5.95)
			s.arm("a", "1", 10, 9)
			s.run("a", 9.6, 11)
			s.finish("a", "1", 11.2, store.Succeeded)
			s.request("a", "release", "1", 11.4, 200)
		},
		func(s *story) { // a stop, in time for the others
			s.arm("a", "1", 10, 8.2)
			s.stops("a", 8.4, 13.4)
			s.giveBack("a", "1", 8.6)
			s.request("a", "release", "1", 8.8, 200)
			s.say("a", 9, check.Gone)
			s.arm("b", "2", 10, 9.2)
			s.run("b", 10.01, 11)
			s.finish("b", "2", 11.2, store.Succeeded)
		},
		func(s *story) { // a stop when the others have looked
			s.arm("a", "1", 10, 8.2)
			s.stops("a", 9.3, 14.3)
			s.run("a", 10.01, 11)
			s.finish("a", "1", 11.2, store.Succeeded)
			s.request("a", "release", "1", 11.4, 200)
			s.say("a", 12, check.Gone)
		},
		func(s *story) { // a death
			s.arm("a", "1", 10, 8.5)
			s.say("a", 9, check.Crash)
			s.acquire("b", "2", 25)
			s.settle("b", "2", 25.5, store.Outcome{Tick: at(10), Status: store.Abandoned, Reason: "its runner died", Token: s.last.Token})
		},
		func(s *story) { // a lease that is kept for the next tick, renewed meanwhile
			s.arm("a", "1", 10, 8.5)
			s.run("a", 10.01, 18)
			s.finish("a", "1", 18.2, store.Succeeded)
			s.request("a", "renew", "1", 18.5, 200)
			s.claimAhead("a", "1", 20, 18.4)
			s.run("a", 20.01, 21)
			s.finish("a", "1", 21.2, store.Succeeded)
			s.request("a", "release", "1", 21.4, 200)
		},
	},
	"I24 early": {func(s *story) {
		s.arm("a", "1", 10, 8.5)
		s.run("a", 9.2, 9.4)
	}},
	"I24 said": {
		func(s *story) { s.acquire("a", "1", 6); s.claim("a", "1", 6.2, 10) },
		func(s *story) { s.arm("a", "1", 10, 8.5); s.Fleet["a"][0].ClaimAhead = false },
		func(s *story) { s.arm("a", "1", 10, 5) },
	},
	"I24 superseded": {
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			armed := s.last
			s.giveBack("a", "1", 9.2)
			s.last = armed
			s.run("a", 10.1, 11)
		},
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			s.request("a", "renew", "1", 9, 409)
			s.run("a", 10.1, 11)
		},
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			armed := s.last
			s.arm("b", "2", 10, 9.2)
			s.last = armed
			s.run("a", 10.1, 11)
		},
	},
	"I24 trust": {func(s *story) { // a renewal comes too late
		s.acquire("a", "1", 5)
		s.claimAhead("a", "1", 20, 18.2)
		s.request("a", "renew", "1", 18.5, 200)
		s.run("a", 20.1, 21)
	}},
	"I24 spent": {
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			s.giveBack("a", "1", 9).Record.Token--
		},
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			s.giveBack("a", "1", 9).Record.Watermark = at(10)
		},
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			s.giveBack("a", "1", 9).Record.Run.Status = store.Running
		},
	},
	"I24 quiet": {
		func(s *story) { // it settles an older tick
			s.acquire("a", "1", 18.2)
			s.claimAhead("a", "1", 20, 18.4).Record.History = []store.Outcome{{Tick: at(10), Status: store.Missed, Reason: "a newer one was due"}}
		},
		func(s *story) { // another replica settles it before its tick
			s.arm("a", "1", 10, 7.4)
			s.acquire("b", "2", 7.8)
			s.settle("b", "2", 8, store.Outcome{Tick: at(10), Status: store.Abandoned, Reason: "its runner died", Token: s.last.Token})
		},
		func(s *story) { // another attempt before the tick
			s.arm("a", "1", 10, 7.4)
			s.acquire("b", "2", 7.8)
			s.claimAhead("b", "2", 10, 8).Record.Run.Attempt = 2
		},
		func(s *story) { // under a run
			s.begin("a", "1", 10, 11, 19)
			s.claimAhead("a", "1", 20, 18.4)
		},
	},
	"I24 stop": {
		func(s *story) {
			s.arm("a", "1", 10, 8.5)
			s.stops("a", 9, 14)
			s.say("a", 15, check.Gone)
			s.request("b", "read", "", 60, 200)
		},
		func(s *story) { // its grace is over
			s.arm("a", "1", 10, 8.5)
			s.stops("a", 9, 9.5)
			s.run("a", 10.1, 11)
		},
	},
	"I8 let go": {
		func(s *story) {
			s.acquire("a", "1", 8.5)
			s.stops("a", 9, 14)
			s.say("a", 10, check.Gone)
		},
		func(s *story) { s.leftToExpire(7) }, // the orders could be read again
	},
	"I24 death": {func(s *story) {
		s.arm("a", "1", 10, 8.5)
		s.say("a", 9, check.Crash)
		s.acquire("b", "2", 25)
		s.settle("b", "2", 25.5, store.Outcome{Tick: at(10), Status: store.Missed, Reason: "a newer one was due"})
	}},
	"I5 unclaimed": {func(s *story) {
		s.acquire("a", "1", 48.5)
		s.say("a", 49, check.Crash)
		s.request("b", "read", "", 100, 200)
	}},
	"I8 fresh": {func(s *story) { // the others had not looked
		s.arm("a", "1", 10, 6.9)
		s.stops("a", 7.2, 12)
		s.run("a", 10.1, 11)
	}},
	"I11 release": {func(s *story) { // the claim was applied after all
		s.arm("a", "1", 10, 8.5)
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(9), Note: "the claim was not confirmed, so nothing runs"})
		s.request("a", "release", "1", 9.2, 200)
	}},
	"I12 budget": {func(s *story) { // b looks three times before each tick
		s.say("", 5, check.Healed).Replica = ""
		for tick := 10.0; tick <= 240; tick += 10 {
			id := fmt.Sprint(tick)
			s.arm("a", id, tick, tick-1.8)
			for n := range 3 {
				s.request("b", "read", "", tick-1.2+0.3*float64(n), 200)
			}
			s.run("a", tick+0.01, tick+1)
			s.finish("a", id, tick+1.2, store.Succeeded)
			s.request("a", "release", id, tick+1.4, 200)
		}
	}},
})

// arm is a lease that is acquired at t, and a claim of a tick after that.
func (s *story) arm(replica, id string, tick, t float64) *check.Event {
	s.acquire(replica, id, t)
	return s.claimAhead(replica, id, tick, t+0.2)
}

// claimAhead is a claim before its tick.
func (s *story) claimAhead(replica, id string, tick, t float64) *check.Event {
	for _, d := range s.Fleet {
		d[0].ClaimAhead = true
	}
	e := s.claim(replica, id, t, tick)
	e.Record.Run.Armed = true
	s.last.Run.Armed = true
	return e
}

// giveBack is what takes that back.
func (s *story) giveBack(replica, id string, t float64) *check.Event {
	return s.write(replica, "take back", id, t, func(r *store.Record) {
		r.Run.Tick, r.Run.Attempt, r.Run.Status, r.Run.Armed = at(0), 1, store.Idle, false
	})
}

// stops has a replica asked to stop, with a grace until then.
func (s *story) stops(replica string, t, until float64) {
	s.say(replica, t, check.Stop).End = at(until)
	s.add(check.Event{What: check.Said, Replica: replica, Job: "job", Token: s.last.Token, Time: at(t), Note: "stopped before the run began: the claim was taken back"})
}

// leftToExpire is a lease that is neither used nor released, since a read of the orders gets no answer
// until then. Its replica stops later.
func (s *story) leftToExpire(until float64) {
	e := s.request("a", "read document", "", 6.05, 0)
	e.Job, e.Cause, e.Heard, e.Done = ".control", "reply lost", time.Time{}, at(until)
	s.acquire("a", "1", 8.5)
	s.stops("a", 30, 34)
	s.say("a", 31, check.Gone)
}

var _ = plant(stories{
	"I3 ledger": {func(s *story) {
		// an entry is made for later, so the ticks until then are nobody's
		made := s.Events[len(s.Events)-1]
		made.Record.Watermark = at(60)
		s.last.Watermark = at(60)
		s.tick("a", "1", 70)
	}},
})
