package check_test

import (
	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// A platform starts processes for a job that runs everywhere.
var _ = plant(stories{
	"": {
		func(s *story) { s.woken(10, 10.5, 10.5); s.here(10, 11, 12) },
		func(s *story) { s.woken(20, 19.5, 19.5); s.here(20, 20, 21) }, // early, and waits
		func(s *story) { s.woken(0, 25, 25); s.here(20, 25.1, 26) },    // names none
		func(s *story) { s.woken(10, 10.5, 500); s.here(500, 11, 12) }, // its clock is wrong
		func(s *story) { s.woken(10, 25, 25); s.here(10, 25.1, 26) },   // the one that was named
		func(s *story) { s.wokenTooLate(soloist.Replace) },
	},
	"I13 woken": {
		func(s *story) { s.woken(10, 10.5, 10.5) },
		func(s *story) { s.woken(0, 25, 25) },
		func(s *story) { s.woken(10, 25, 25); s.here(20, 25.1, 26) },
		func(s *story) { s.woken(10, 10.5, 10.5); s.here(10, 11, 12); s.here(20, 20, 21) },
		func(s *story) { s.wokenTooLate(soloist.QueueOne) },
	},
})

// woken is a process that is started at t for a tick, zero for none, by when its
// clock shows own.
func (s *story) woken(tick, t, own float64) {
	s.everywhere()
	e := s.add(check.Event{What: check.Woken, Replica: "a", Job: "here", Time: at(t), Sent: at(own), End: at(t + 5)})
	if tick > 0 {
		e.Tick = at(tick)
	}
}

// wokenTooLate is a process whose run was replaced before its function began, since a newer tick came due meanwhile.
func (s *story) wokenTooLate(policy soloist.OverlapPolicy) {
	s.woken(10, 19.5, 19.5)
	s.here(20, 20.1, 21)
	s.Fleet["a"][2].Overlap = policy
	s.add(check.Event{What: check.Emitted, Replica: "a", Job: "here", Time: at(20), Op: string(event.Ended), Tick: at(10), Note: string(store.Cancelled)})
}

var _ = plant(stories{
	"I8 shutdown": {func(s *story) {
		// it dies long after that
		s.say("a", 9, check.Stop)
		s.tick("a", "1", 10)
		s.say("a", 50, check.Crash)
	}},
})
