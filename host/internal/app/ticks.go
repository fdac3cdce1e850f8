package app

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

// TicksOf returns the ticks of a job that follows no other one.
func TicksOf(j soloist.Job) (*ticks.Ticks, error) {
	s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name)
	if err != nil {
		return nil, err
	}
	return ticks.New(s, ticks.Limits{From: j.From, Until: j.Until, Except: j.Except, Only: j.Only, Shift: ticks.Shift(j.Shift)})
}

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
