package check_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// bounds gives the job of all replicas its ticks in a time alone.
func (s *story) bounds(from, before float64) {
	for _, of := range s.Fleet {
		of[0].Bound(at(from), at(before))
	}
}

var _ = plant(stories{
	"": {
		func(s *story) { s.bounds(5, 15); s.tick("a", "1", 10) },
		func(s *story) { // in a pause, until another definition comes into force
			s.bounds(15, 100)
			s.Fleet["a"][0].Paused = true
			s.acquire("a", "1", 33)
			s.write("a", "settle", "1", 33.2, func(r *store.Record) {
				r.Definition.Spec = "another"
				r.History, r.Watermark = []store.Outcome{{From: at(0), Tick: at(33), Count: 2, Status: store.Skipped, Reason: "paused"}}, at(33)
			})
			s.request("a", "release", "1", 34, 200)
		},
	},
	"I34 named": {
		func(s *story) { s.bounds(15, 100); s.tick("a", "1", 10) }, // before its first tick
		func(s *story) { s.bounds(0, 10); s.tick("a", "1", 10) },   // after its last one
		func(s *story) { // in between
			s.bounds(15, 100)
			s.acquire("a", "1", 20)
			s.write("a", "settle", "1", 20.2, func(r *store.Record) {
				r.History, r.Watermark = []store.Outcome{{Tick: at(10), Status: store.Missed, Reason: "past the starting deadline"}}, at(10)
			})
			s.request("a", "release", "1", 21, 200)
		},
	},
})

func TestTicksInTimes(t *testing.T) {
	d := check.Definition{Every: 10 * time.Second, Open: []check.Time{{From: at(5), Before: at(30)}, {From: at(60), Before: at(80)}}}
	for _, tt := range []struct{ at, after, last float64 }{
		{0, 10, -1}, {9, 10, -1}, {10, 20, 10}, {20, 60, 20}, {35, 60, 20}, {60, 70, 60}, {75, -1, 70}, {500, -1, 70},
	} {
		if got := d.After(at(tt.at)); tt.after >= 0 && !got.Equal(at(tt.after)) || tt.after < 0 && got.Year() != 2200 {
			t.Errorf("after %g: got %s, want %g", tt.at, got, tt.after)
		}
		if got := d.Last(at(tt.at)); tt.last >= 0 && !got.Equal(at(tt.last)) || tt.last < 0 && !got.IsZero() {
			t.Errorf("up to %g: got %s, want %g", tt.at, got, tt.last)
		}
	}
}

var _ = plant(stories{
	"I19 reason": {func(s *story) {
		// each of them has to be run
		for _, d := range s.Fleet {
			d[0].Missed = soloist.RunAll
		}
		s.acquire("a", "1", 40)
		s.settle("a", "1", 40.5, store.Outcome{From: at(0), Tick: at(30), Count: 3, Status: store.Missed, Reason: "a newer one was due"})
	}},
})
