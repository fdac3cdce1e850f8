package check_test

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// Nothing goes wrong, and the run of one tick takes longer than the period.
var _ = plant(stories{
	// Three ticks are made up for in the period of the last one: what the first
	// two take is not the third one's.
	"": {
		func(s *story) { s.backlog(0) },
		// Who waits for a slot of the group looks as often as its patience ends.
		func(s *story) { s.slotAwaited(211, 9) },
	},
	// A follower looks too often after the end of the run before.
	"I12 budget": {
		func(s *story) { s.backlog(7) },
		// It looks more often than that, or while a slot is free.
		func(s *story) { s.slotAwaited(211, 13) },
		func(s *story) { s.slotAwaited(181, 9) },
	},
})

// backlog is a run of the tick at 130 until 151, which makes a due the ticks at 140
// and 150 late. After that b looks so often.
func (s *story) backlog(looks int) {
	for _, d := range s.Fleet {
		d[0].Missed = soloist.RunAll
	}
	s.say("", 5, check.Healed).Replica = ""
	for tick := 10.0; tick <= 120; tick += 10 {
		s.tick("a", fmt.Sprint(tick), tick)
	}
	for _, replica := range []string{"a", "b"} {
		s.request(replica, "read", "", 6, 404).Job = check.Foreign
	}
	s.request("b", "read", "", 7, 200)
	s.late("a", 130, 130, 151)
	s.late("a", 140, 152, 153)
	s.late("a", 150, 154, 155)
	for i := range looks {
		s.request("b", "read", "", 153.5+float64(i)/10, 200)
	}
	s.tick("a", "160", 160)
}

// late is a tick that is claimed at from and whose run ends at to.
func (s *story) late(replica string, tick, from, to float64) {
	id := fmt.Sprint(tick)
	s.acquire(replica, id, from)
	s.claim(replica, id, from+0.2, tick)
	for t := from + 4; t < to; t += 4 {
		s.request(replica, "renew", id, t, 200)
	}
	s.run(replica, from+0.3, to)
	s.finish(replica, id, to+0.2, store.Succeeded).Record.Run.Finished = at(to)
	s.request(replica, "release", id, to+0.4, 200)
}

// slotAwaited is a tick at 180 that is claimed at 210. The only slot of its group is leased until then or
// before, and b looks so often meanwhile.
func (s *story) slotAwaited(until float64, looks int) {
	s.group(1, 1)
	for replica, d := range s.Fleet {
		d[0].Every = time.Minute
		s.Fleet[replica] = append(d[:1], check.Definition{Name: check.Foreign, Every: time.Minute})
		s.request(replica, "read", "", 6, 404).Job = check.Foreign
	}
	s.say("", 5, check.Healed).Replica = ""
	s.request("b", "read", "", 7, 200)
	s.tick("a", "60", 60)
	s.tick("a", "120", 120)
	s.job = groupSlot
	s.acquire("a", "slot", 179)
	for t := 184.0; t < until; t += 5 {
		s.request("a", "renew", "slot", t, 200)
	}
	s.request("a", "release", "slot", until, 200)
	s.job = ""
	for i := range looks {
		s.request("b", "read", "", 181+28*float64(i)/float64(looks), 200)
	}
	s.late("a", 180, 210, 212)
	s.tick("a", "240", 240)
}

var _ = plant(stories{
	"I17 unhindered": {func(s *story) {
		// a process that did not stay has gone long before that
		s.Fleet["a"][0].Every = time.Minute
		s.Fleet["w"] = s.Fleet["a"][1:]
		s.say("w", 1, check.Up).Cause = "for a call"
		s.say("w", 3, check.Gone)
		s.acquire("a", "1", 5050)
		s.settle("a", "1", 5050.5, store.Outcome{From: at(0), Tick: at(4980), Count: 83, Status: store.Missed, Reason: "a newer one was due"})
	}},
})
