package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// startingDeadline returns how late a first attempt may start; zero: as late as Missed says.
// Lease is the store's: a job may ask for a shorter one, which its beats keep.
func (p *Policy) startingDeadline() time.Duration {
	if p.StartingDeadline == 0 && p.Missed == SkipMissed {
		return p.Lease
	}
	return p.StartingDeadline
}

// choose returns the tick to run of those after through, up to newest, and why the ones
// before it are missed. A zero tick: none is to run. Ticks of a pause are not run later.
func (p *Policy) choose(through, newest, now time.Time, pauses []store.Span) (tick time.Time, reason string) {
	deadline := p.startingDeadline()
	if deadline > 0 && now.Sub(newest) > deadline {
		return time.Time{}, "past the starting deadline"
	}
	if p.Missed != RunAll {
		if p.lastOutside(newest, pauses).Equal(newest) {
			tick = newest
		}
		return tick, "a newer one was due"
	}
	if deadline > 0 {
		through = instant.Later(through, now.Add(-deadline-1))
	}
	// RunAll: go back from the newest tick to the oldest tick that may still run.
	before := p.lastOutside(newest, pauses)
	for n := 0; before.After(through); n++ {
		if n == maxBacklog {
			return tick, "too many were due"
		}
		tick = before
		before = p.lastOutside(p.Ticks.Last(tick.Add(-1)), pauses)
	}
	return tick, "past the starting deadline"
}
