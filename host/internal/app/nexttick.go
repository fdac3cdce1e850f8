package app

import (
	"time"

	"github.com/soloist-go/soloist/internal/ticks"
)

// ticks returns a function for the next tick after an instant, of any job that an alarm is set for, by the schedules alone.
// Zero: none is to come.
func (a *App) ticks() (next func(after time.Time) time.Time) {
	var all []*ticks.Ticks
	for _, j := range a.Scheduler.Jobs {
		if t, err := TicksOf(j); err == nil && !j.Paused && !j.EveryReplica {
			all = append(all, t)
		}
	}
	return func(after time.Time) (first time.Time) {
		for _, t := range all {
			if at := t.Next(after); first.IsZero() || at.Before(first) && !at.IsZero() {
				first = at
			}
		}
		return first
	}
}
