package check_test

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// The schedule of a job changes while a tick is due.
var _ = plant(stories{
	"": {
		// The tick at 20 is of both schedules, and is owed.
		func(s *story) { s.changes(20*time.Second, 27, 19.999, 20) },
		// The newest tick of the new one, at 30, is not the first of the old one.
		func(s *story) { s.changes(30*time.Second, 35, 35, 60) },
		// A newer one of the new schedule is due.
		func(s *story) { s.changes(5*time.Second, 28, 28, 30) },
		// The definition in force is that of c, a singleton, whatever others write under it.
		func(s *story) {
			s.Fleet["c"] = []check.Definition{s.Fleet["b"][0], s.Fleet["b"][1]}
			s.Fleet["c"][0].Every = 0
			s.changes(20*time.Second, 27, 27, 40, func() {
				for i, by := range []string{"c", check.Operator, "a"} {
					id, t := fmt.Sprint("between ", i), 15+float64(i)
					s.acquire(by, id, t)
					s.write(by, "settle", id, t+0.2, func(r *store.Record) { r.Definition.Spec = "single" })
					s.request(by, "release", id, t+0.4, 200)
				}
			})
		},
	},
	"I17 common": {
		func(s *story) { s.changes(20*time.Second, 27, 27, 40) },
		func(s *story) { s.changes(20*time.Second, 23, 23, 40) },
	},
})

// changes is a tick at 10, and what b, which has another schedule, makes of the
// ticks after that at the time t: those up to from are missed, and tick is run. What comes
// between is a tick of nobody.
func (s *story) changes(every time.Duration, t, from, tick float64, between ...func()) {
	s.Fleet["b"] = []check.Definition{s.Fleet["b"][0], s.Fleet["b"][1]}
	s.Fleet["b"][0].Every = every
	s.tick("a", "1", 10)
	for _, f := range between {
		f()
	}
	s.acquire("b", "2", t)
	s.write("b", "settle", "2", t+0.3, func(r *store.Record) {
		r.Definition.Spec, r.Watermark = "younger", at(from)
		r.History = append([]store.Outcome{{From: at(10), Tick: at(from), Status: store.Missed, Reason: "the schedule changed"}}, r.History...)
	})
	s.request("b", "release", "2", t+0.5, 200)
	t = max(t+1, tick)
	s.acquire("b", "3", t)
	s.claim("b", "3", t+0.5, tick)
	s.run("b", t+1, t+2)
	s.finish("b", "3", t+2.5, store.Succeeded)
}

var _ = plant(stories{
	"I3 ledger": {func(s *story) {
		// ticks are lost as the definition changes
		s.tick("a", "1", 10)
		s.last.Definition.Spec = "new"
		s.acquire("b", "2", 50)
		s.settle("b", "2", 50.5, store.Outcome{Tick: at(40), Status: store.Missed, Reason: "the schedule changed"})
	}},
})
