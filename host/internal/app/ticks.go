package app

import (
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
