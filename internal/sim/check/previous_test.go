package check_test

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// given is a tick of a that knows those of two seconds of the story as the ticks around its own.
func (s *story) given(id string, tick, previous, next float64) {
	s.Around = true
	s.tick("a", id, tick)
	for _, e := range s.Events {
		if e.Token != s.last.Token || e.Tick.IsZero() {
			continue
		}
		if e.Next = at(next); previous > 0 {
			e.Previous = at(previous)
		}
	}
}

// filledFirst is a tick of a backfill before which the story has none: the day before is left out by the calendar of the job, or the
// job begins with that tick. The tick before that is given as the one of another time.
func (s *story) filledFirst(previous float64, begins bool) {
	s.Around = true
	s.Fleet["a"][0].Bound(at(-40), time.Time{})
	if begins {
		s.Fleet["a"][0].Limits.From = at(-40)
	}
	s.backfill()
	s.fill("a", "1", 1, -40, nil)
	for _, e := range s.Events {
		if e.What == check.Ran {
			e.Previous, e.Next = at(previous), at(-30)
		}
	}
}

var _ = plant(stories{
	"": {
		func(s *story) { s.filledFirst(-24*3600-50, false) },
		func(s *story) { s.given("1", 10, 0, 20); s.given("2", 20, 10, 30) },
		func(s *story) { // one that has stalled has not succeeded
			s.given("1", 10, 0, 20)
			s.Around = true
			r := s.begin("a", "2", 20, 21, 23)
			r.Previous, r.Next = at(10), at(30)
			r.cancelled(22.5, soloist.ErrStalled)
			for _, d := range s.Fleet {
				d[0].HeartbeatTimeout = time.Second
			}
			s.finish("a", "2", 23.5, store.Stalled)
			s.request("a", "release", "2", 24, 200)
			s.given("3", 30, 10, 40)
		},
	},
	"I32 previous": {
		func(s *story) { s.filledFirst(-24*3600-50, true) },
		func(s *story) { s.filledFirst(-30, false) },
		func(s *story) { s.given("1", 10, 0, 20); s.given("2", 20, 0, 30) },
		func(s *story) { s.given("1", 10, 0, 20); s.given("2", 20, 20, 30) },
		func(s *story) { s.given("1", 10, 0, 30) },
	},
})

var _ = plant(stories{
	"I27 after": {func(s *story) {
		// the entry before was spoilt and mended long before the tick
		s.follows(false, func(*story) {})
		s.corrupted("garbage", 0.3, 0.4, nil)
		s.Events[len(s.Events)-1].Job = "before"
		s.runLater(10, 15)
	}},
})
