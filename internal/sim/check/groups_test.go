package check_test

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

const groupSlot = "0-group-heavy"

// group has a and b do two jobs of one group, each knowing its own limit.
func (s *story) group(a, b int) {
	for replica, slots := range map[string]int{"a": a, "b": b} {
		one := check.Definition{Name: "job", Every: 10 * time.Second, Lease: lease, MaxTries: 2, Group: "heavy", Slots: slots}
		other := one
		other.Name = "other"
		s.Fleet[replica] = []check.Definition{one, other}
	}
}

// does is one run of a job from its claim to its outcome.
func (s *story) does(replica, job, id string, from, to float64) *check.Event {
	s.job = job
	s.hold(replica, id, from-1)
	for _, e := range []check.Event{
		{What: check.Said, Replica: replica, Note: "run started", Time: at(from)},
		{What: check.Said, Replica: replica, Note: "run ended", Time: at(to)},
	} {
		e.Job, e.Token = job, s.last.Token
		s.add(e)
	}
	e := s.add(check.Event{What: check.Ran, Replica: replica, Job: job, Token: s.last.Token, Tick: s.last.Run.Tick,
		Attempt: s.last.Run.Attempt, Try: 1, Time: at(from), End: at(to)})
	s.finish(replica, id, to+0.2, store.Succeeded)
	s.request(replica, "release", id, to+0.4, 200)
	return e
}

// slot is the lease of the only slot of the group.
func (s *story) slot(replica, id string, from, to float64) {
	s.job = groupSlot
	s.acquire(replica, id, from)
	s.request(replica, "release", id, to, 200)
	s.job = ""
}

// fullFor has b hold the only slot of the group from 50 until a time, while two ticks come due that a
// calls missed at 181.
func (s *story) fullFor(until float64) {
	s.group(1, 1)
	for _, defs := range s.Fleet {
		defs[0].Every = time.Minute
	}
	s.job = groupSlot
	s.acquire("b", "2", 50).Span = 10 * time.Minute
	s.request("b", "release", "2", until, 200)
	s.job = ""
	s.acquire("a", "1", 181)
	s.settle("a", "1", 181.5, store.Outcome{From: at(0), Tick: at(120), Count: 2, Status: store.Missed, Reason: "a newer one was due"})
}

// holdsOff is a lease of the first slot of the group that is not claimed before its hold-off ends.
func (s *story) holdsOff(replica, id string, from, to float64) {
	before := s.last
	s.job = groupSlot
	s.acquire(replica, id, from)
	s.request(replica, "renew", id, from+5, 200)
	s.request(replica, "renew", id, from+10, 200)
	s.claim(replica, id, to, to)
	s.finish(replica, id, to+1, store.Succeeded)
	s.request(replica, "release", id, to+1.2, 200)
	s.last = before
}

// skipped is the outcome of tick 10 at t, as that of its group.
func (s *story) skipped(t float64, status store.Status, reason string) {
	s.job = ""
	s.says(t, status, reason)
}

var _ = plant(stories{
	"": {
		func(s *story) { s.groupOfDead(70) },
		func(s *story) { s.fullFor(170) },
		func(s *story) { // two slots, or one after the other
			s.group(2, 1)
			s.does("a", "job", "1", 11, 15)
			s.does("b", "other", "2", 12, 14)
			s.does("a", "other", "3", 21, 22)
		},
		func(s *story) { // a suspended replica runs nothing
			s.group(1, 1)
			s.does("a", "job", "1", 11, 20)
			s.say("a", 12, check.Freeze).End = at(20)
			s.does("b", "other", "2", 15, 16)
		},
		func(s *story) { // nobody knows who had a slot whose entry was deleted
			s.group(1, 1)
			s.does("a", "job", "1", 11, 20)
			s.say("", 12, check.Deleted).Job = groupSlot
			s.does("b", "other", "2", 15, 16)
		},
		func(s *story) { // the group was full when the tick came due
			s.group(1, 1)
			s.slot("b", "2", 8, 12)
			s.skipped(14, store.Skipped, "group heavy")
		},
		func(s *story) { // a look for a slot was not answered
			s.group(1, 1)
			s.job = groupSlot
			s.request("a", "read", "", 11, 0).Cause = string(check.Drop)
			s.skipped(16, store.Skipped, "group heavy")
		},
		func(s *story) { // another job of its replica holds off on one slot, and has the turn
			s.group(2, 2)
			s.holdsOff("a", "2", 8, 22)
			s.skipped(26, store.Skipped, "group heavy")
		},
	},
	"I17 unhindered": {func(s *story) { s.fullFor(130) }},    // there was time after that
	"I5 unclaimed":   {func(s *story) { s.groupOfDead(62) }}, // a slot was free all the time
	"I25 group": {
		func(s *story) {
			s.group(1, 1)
			s.does("a", "job", "1", 11, 15)
			s.does("b", "other", "2", 12, 14)
		},
		func(s *story) { // the replica with the larger limit is gone
			s.group(1, 2)
			s.say("b", 5, check.Gone)
			s.does("a", "job", "1", 11, 15)
			s.does("a", "other", "2", 12, 14)
		},
	},
	"I25 group skips": {
		func(s *story) { // another slot was free
			s.group(2, 2)
			s.slot("b", "2", 8, 12)
			s.skipped(14, store.Skipped, "group heavy")
		},
		func(s *story) { // a job of another replica holds off on one slot
			s.group(2, 2)
			s.holdsOff("b", "2", 8, 22)
			s.skipped(26, store.Skipped, "group heavy")
		},
		func(s *story) { // the hold-off ends soon after the tick
			s.group(2, 2)
			s.holdsOff("a", "2", 1, 13)
			s.skipped(26, store.Skipped, "group heavy")
		},
		func(s *story) { // the slot was free before the tick
			s.group(1, 1)
			s.slot("b", "2", 4, 5)
			s.skipped(14, store.Skipped, "group heavy")
		},
	},
	"I19 reason": {
		func(s *story) { // the job is in no group
			s.skipped(14, store.Skipped, "group heavy")
		},
		func(s *story) { // it is in another one
			s.group(1, 1)
			s.slot("b", "2", 8, 12)
			s.skipped(14, store.Skipped, "group light")
		},
		func(s *story) { // it is not missed
			s.group(1, 1)
			s.slot("b", "2", 8, 12)
			s.skipped(14, store.Missed, "group heavy")
		},
	},
})

// groupOfDead is a replica that dies with the lease of a job and the only slot of its group. The lease of
// the job runs out at 63.5, that of the slot at the time to.
func (s *story) groupOfDead(to float64) {
	s.group(1, 1)
	s.job = groupSlot
	s.acquire("a", "9", 48).Span = time.Duration((to - 48) * float64(time.Second))
	s.job = ""
	s.acquire("a", "1", 48.5)
	s.say("a", 49, check.Crash)
	s.request("b", "read", "", 100, 200)
}

var _ = plant(stories{
	"I5 failover": {func(s *story) {
		// nobody goes on with it at all
		s.crash()
		s.request("b", "read", "", 400, 200)
	}},
})
