package view

import (
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// An Outlook is what a schedule says about the ticks to come.
type Outlook struct {
	Job          string     `json:"job,omitempty"`
	Schedule     string     `json:"schedule"` // in words
	Text         string     `json:"text"`     // canonical
	Zone         string     `json:"zone"`     // of the local times
	EveryReplica bool       `json:"everyReplica,omitempty"`
	Paused       bool       `json:"paused,omitempty"`
	Ticks        []Upcoming `json:"ticks"`
	Warnings     []string   `json:"warnings"`
}

// An Upcoming is a tick to come.
type Upcoming struct {
	Tick  time.Time `json:"tick"`
	Local time.Time `json:"local"`
	Clock string    `json:"clock,omitempty"` // how it changes on that day
}

// Look asks the schedule for its next n ticks after an instant.
func Look(s *schedule.Schedule, from time.Time, loc *time.Location, n int) Outlook {
	o := Outlook{Schedule: s.Words(), Text: s.String(), Zone: loc.String(), Ticks: []Upcoming{},
		Warnings: append([]string{}, s.Warnings(from)...)}
	for range n {
		if from = s.Next(from); from.IsZero() {
			break
		}
		local := from.In(loc)
		o.Ticks = append(o.Ticks, Upcoming{Tick: from, Local: local, Clock: clockChange(local)})
	}
	return o
}

// clockChange says how the clock of the zone changes on the local date of at.
func clockChange(at time.Time) string {
	begin, end := at.ZoneBounds()
	for _, change := range []time.Time{begin, end} {
		if change.IsZero() {
			continue
		}
		before, after := change.Add(-time.Second), change
		_, old := before.Zone()
		_, offset := after.Zone()
		day := at.Format(time.DateOnly)
		if old == offset || day != before.Format(time.DateOnly) && day != after.Format(time.DateOnly) {
			continue
		}
		way := "forward"
		if offset < old {
			way = "back"
		}
		return "clock goes " + way + " on " + after.Format(time.DateOnly)
	}
	return ""
}
