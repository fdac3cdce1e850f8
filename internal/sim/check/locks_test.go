package check_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// The entries of two slots, and of what is done once.
const (
	slot0 = "0-lock-north"
	slot1 = "1-lock-north"
	build = "0-once-migrate-ajynutnkyukpgc7m4v4i"
)

// locks has the replicas use a lock with so many slots, and do something once, and no job.
func (s *story) locks(slots int) {
	s.Fleet = map[string][]check.Definition{"a": nil, "b": nil}
	s.Locks = map[string]check.Lock{"north": {Slots: slots, Lease: lease}}
	s.Onces = map[string]check.Once{build: {Lease: lease, MaxTries: 2, Backoff: time.Second}}
}

// call is one of Do or TryDo, or of Run for what is done once.
func (s *story) call(replica, op, id string, from, to float64, note string) *check.Event {
	e := check.Event{What: check.Called, Replica: replica, Op: op, Call: id, Time: at(from), End: at(to), Note: note}
	if op == "once" {
		e.Job = build
	} else {
		e.Lock = "north"
	}
	return s.add(e)
}

// held is a lease and a claim, under which a function runs.
func (s *story) held(replica, job, id string, from, to float64) *check.Event {
	s.job = job
	s.acquire(replica, id, from-0.6)
	s.write(replica, "claim", id, from-0.3, func(r *store.Record) {
		r.Token, r.Run.Attempt, r.Run.Status, r.Run.Request = r.Token+1, 1, store.Running, id
	})
	e := check.Event{What: check.Ran, Replica: replica, Job: job, Call: id, Token: s.last.Token, Attempt: 1, Try: 1, Time: at(from), End: at(to), ID: fmt.Sprint(s.last.Token)}
	if job != build {
		e.Job, e.Lock = "", "north"
	}
	return s.add(e)
}

// letGo writes the outcome of what was held last, and releases the lease.
func (s *story) letGo(replica, id string, t float64, status store.Status) {
	s.write(replica, "finish", id, t, func(r *store.Record) {
		r.Run.Status, r.Run.Finished = status, at(t)
		r.History = append([]store.Outcome{{Request: id, Status: status, Token: r.Token, Attempt: 1, End: at(t)}}, slices.Clone(r.History)...)
	})
	s.request(replica, "release", id, t+0.2, 200)
}

// ignoring is a function that goes on from 12 to 30 although its context has ended, and keeps its lease.
func (s *story) ignoring() {
	s.locks(1)
	s.say("", 10, check.Healed).End = at(1000)
	s.call("a", "do", "1", 8, 31, "").Cancelled = at(12)
	s.last.Run.Lease = store.Seconds(lease)
	r := s.held("a", slot0, "1", 9, 30)
	r.Cancelled, r.Cause = at(12), "the caller goes away"
	for t := 12.5; t < 30; t += 5 {
		s.request("a", "renew", "1", t, 200)
	}
	s.letGo("a", "1", 30.2, store.Succeeded)
}

// overrun is a function that goes on from 12 to 20 although its lease is lost. Overrun is called at 12.4.
func (s *story) overrun() {
	s.locks(1)
	s.say("", 10, check.Healed).End = at(1000)
	s.call("a", "do", "1", 8, 21, check.IsLost)
	r := s.held("a", slot0, "1", 9, 20)
	r.Cancelled, r.Cause = at(12), store.ErrLost.Error()
	s.add(check.Event{What: check.Overran, Replica: "a", Lock: "north", Time: at(12.4)})
	s.letGo("a", "1", 20.2, store.Abandoned)
}

// returnsAsLost is a call of Do whose function returns well, and that says that the lease was lost: an operator has broken that, or a
// request of its own was refused, or there is no reason.
func (s *story) returnsAsLost(broken, refused bool) {
	s.locks(1)
	s.call("a", "do", "1", 8, 12.5, check.IsLost)
	s.held("a", slot0, "1", 9, 12)
	switch {
	case broken:
		s.request(check.Operator, "break", "", 11.9, 202)
	case refused:
		s.request("a", "renew", "1", 11.9, 409)
	default:
		s.letGo("a", "1", 12.2, store.Succeeded)
	}
}

// turn is a call of Do that goes well.
func (s *story) turn(replica, job, id string, from, to float64) {
	op := "do"
	if job == build {
		op = "once"
	}
	s.call(replica, op, id, from-1, to+1, "")
	s.held(replica, job, id, from, to)
	s.letGo(replica, id, to+0.2, store.Succeeded)
}

var _ = plant(stories{
	"": {
		func(s *story) { s.overrun(); s.call("a", "do", "2", 12.5, 12.6, "another goes on") },
		func(s *story) { s.ignoring(); s.call("a", "do", "2", 27.5, 27.6, "another goes on") },
		func(s *story) { // one after the other, and two slots side by side
			s.locks(2)
			s.turn("a", slot0, "1", 10, 12)
			s.turn("b", slot0, "2", 14, 18)
			s.turn("a", slot1, "3", 14, 18)
			s.call("a", "try", "4", 15, 15.2, check.IsHeld)
			s.say("", 20, check.Healed)
		},
		func(s *story) { s.looksAsleep(2, 10.7) },
		func(s *story) { s.returnsAsLost(true, false) },
		func(s *story) { s.returnsAsLost(false, true) },
		func(s *story) { // a call that begins when all others had their turn takes its own
			s.locks(1)
			s.say("", 10, check.Healed).End = at(1000)
			s.turn("a", slot0, "1", 45, 47) // two leases and one turn after the healing is 44
		},
		func(s *story) { // what is done once fails, and then is done
			s.locks(1)
			s.call("a", "once", "2", 9, 20, "")
			s.held("a", build, "1", 10, 11).Note = "failed"
			s.letGo("a", "1", 11.2, store.Failed)
			s.held("a", build, "2", 15, 16)
			s.letGo("a", "2", 16.2, store.Succeeded)
			s.call("b", "once", "3", 30, 30.1, "")
		},
	},
	"I25 holders": {func(s *story) {
		s.locks(1)
		s.turn("a", slot0, "1", 10, 15)
		s.held("b", slot0, "2", 13, 16)
	}},
	"I25 token": {func(s *story) {
		s.locks(1)
		s.turn("a", slot0, "1", 10, 12)
		s.last.Token--
		s.turn("b", slot0, "2", 14, 18)
	}},
	"I25 id": {func(s *story) {
		s.locks(2)
		s.turn("a", slot0, "1", 10, 12)
		s.last.Token--
		s.turn("a", slot1, "2", 14, 18)
	}},
	"I25 told": {
		func(s *story) { s.returnsAsLost(false, false) },
		func(s *story) { // nil, and nothing was called
			s.locks(1)
			s.call("a", "do", "1", 10, 11, "")
		},
		func(s *story) { // before its function
			s.locks(1)
			s.call("a", "do", "1", 9, 11, "")
			s.held("a", slot0, "1", 10, 12)
		},
		func(s *story) { // held, and its function was called
			s.locks(1)
			s.call("a", "try", "1", 9, 13, check.IsHeld)
			s.held("a", slot0, "1", 10, 12)
		},
		func(s *story) { // nil, though its function has failed
			s.locks(1)
			s.call("a", "do", "1", 9, 13, "")
			s.held("a", slot0, "1", 10, 12).Note = "failed"
		},
		func(s *story) { // nil, though the lease was lost
			s.locks(1)
			s.call("a", "do", "1", 9, 13, "")
			e := s.held("a", slot0, "1", 10, 12)
			e.Cancelled, e.Cause = at(11), store.ErrLost.Error()
		},
		func(s *story) { // called twice
			s.locks(1)
			s.call("a", "do", "1", 9, 17, "")
			s.held("a", slot0, "1", 10, 12)
			s.letGo("a", "1", 12.5, store.Succeeded)
			s.held("a", slot0, "2", 14, 16).Call = "1"
		},
	},
	"I25 held": {
		func(s *story) {
			s.locks(1)
			s.turn("a", slot0, "1", 10, 12)
			s.call("b", "try", "2", 15, 16, check.IsHeld)
		},
		func(s *story) {
			s.locks(1)
			s.call("b", "do", "2", 15, 16, check.IsHeld)
		},
		func(s *story) { s.looksAsleep(2, 10.9) }, // the free slot was seen before
		func(s *story) { s.looksAsleep(1, 10.7) }, // there is no other slot
	},
	"I25 bounded": {func(s *story) {
		s.locks(1)
		s.call("a", "do", "1", 10, 50, check.IsHeld).Cancelled = at(12)
	}},
	"I25 turn": {
		func(s *story) { // it waits for ever
			s.locks(1)
			s.say("", 10, check.Healed).End = at(1000)
			s.call("a", "do", "1", 5, 0, "").End = time.Time{}
		},
		func(s *story) { // it begins when all others had their turn, and waits for longer than its own
			s.locks(1)
			s.say("", 10, check.Healed).End = at(1000)
			s.turn("a", slot0, "1", 44.5, 48)
		},
		func(s *story) { // it fails without a fault
			s.locks(1)
			s.say("", 10, check.Healed).End = at(1000)
			s.call("a", "do", "1", 12, 14, "the network")
		},
		func(s *story) { s.ignoring(); s.call("a", "do", "2", 26.5, 26.6, "another goes on") }, // it has time to return
		func(s *story) { s.overrun(); s.call("a", "do", "2", 12.1, 12.2, "another goes on") },  // nobody has called Overrun yet
		func(s *story) { s.overrun(); s.call("a", "do", "2", 20.1, 20.2, "another goes on") },  // it has returned
	},
	"I25 pace": {func(s *story) {
		s.locks(1)
		s.job = slot0
		for i := range 70 {
			s.request("a", "read", "", 30+0.01*float64(i), 200)
		}
	}},
	"I25 once": {func(s *story) {
		s.locks(1)
		s.turn("a", build, "1", 10, 12)
		s.held("b", build, "2", 20, 21)
	}},
	"I25 once told": {
		func(s *story) { // nil, and it was not done
			s.locks(1)
			s.call("a", "once", "1", 9, 13, "")
			s.held("a", build, "1", 10, 12).Note = "failed"
			s.letGo("a", "1", 12.5, store.Failed)
		},
		func(s *story) { // given up too soon
			s.locks(1)
			s.call("a", "once", "1", 9, 13, "it has failed and is not tried again for this key")
			s.held("a", build, "1", 10, 12).Note = "failed"
			s.letGo("a", "1", 12.5, store.Failed)
		},
		func(s *story) { // it ends before its context
			s.locks(1)
			s.call("a", "once", "1", 9, 13, "the store does not answer")
		},
	},
	"I25 once turn": {func(s *story) {
		s.locks(1)
		s.say("", 10, check.Healed).End = at(1000)
		s.call("a", "once", "1", 5, 0, "").End = time.Time{}
	}},
})

// looksAsleep is a call of TryDo for a lock whose first slot is free. The answer about that slot is there
// at 10.8, but its replica is suspended from a time on. The second slot is held.
func (s *story) looksAsleep(slots int, from float64) {
	s.locks(slots)
	s.turn("a", slot1, "1", 10, 20)
	s.job = slot0
	s.call("b", "try", "2", 10.5, 18.5, check.IsHeld)
	s.request("b", "read", "", 10.75, 404)
	s.say("b", from, check.Freeze).End = at(18)
	s.job = slot1
	s.request("b", "read", "", 18.2, 200)
}

var _ = plant(stories{
	"I11 release": {func(s *story) {
		// what it says of a claim comes long after the release, of another one
		s.hold("a", "1", 10)
		s.request("a", "release", "1", 13, 200)
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(3000), Note: "the claim was not confirmed"})
	}},
})

var _ = plant(stories{
	"I25 told": {func(s *story) {
		// nothing has befallen its lease
		s.locks(1)
		s.call("a", "do", "1", 9, 13, check.IsLost)
		s.held("a", slot0, "1", 10, 12)
		s.letGo("a", "1", 12.2, store.Succeeded)
	}},
})
