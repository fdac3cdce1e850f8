package check_test

import (
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// Nothing goes wrong, and the run of one tick takes longer than the period.
var _ = plant(stories{
	// Three ticks are made up for in the period of the last one: what the first
	// two take is not the third one's.
	"": {func(s *story) { s.backlog(0) }},
	// A follower looks too often after the end of the run before.
	"I12 budget": {func(s *story) { s.backlog(7) }},
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
