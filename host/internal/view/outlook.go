package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/ticks"
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
	LeftOut      []LeftDay  `json:"leftOut,omitempty"` // excluded days on which the schedule has ticks, up to the last of Ticks
	Warnings     []string   `json:"warnings"`
}

// An Upcoming is a tick to come.
type Upcoming struct {
	Tick  time.Time `json:"tick"`
	Local time.Time `json:"local"`
	Clock string    `json:"clock,omitempty"`     // how it changes on that day
	Moved string    `json:"movedFrom,omitempty"` // the excluded day that it has moved from; empty: none
}

// A LeftDay is an excluded day on which the schedule has ticks.
type LeftDay struct {
	Day   string   `json:"day"`
	Ticks int      `json:"ticks"`             // of the schedule, on that day; at most 1000 are counted
	By    []string `json:"by"`                // the calendars that exclude the day
	Only  bool     `json:"only,omitempty"`    // by are calendars of Days.Only, none of which has the day
	To    string   `json:"movedTo,omitempty"` // the day that its ticks move to; empty: they do not exist
}

// OutlookOf asks the schedule of a job, or of the job that it follows, for its next n ticks after an
// instant, with local times of a zone; nil: of the schedule's.
func OutlookOf(a *app.App, j soloist.Job, zone *time.Location, from func(*time.Location) time.Time, n int) (Outlook, error) {
	s, err := app.TicksFor(a, j)
	if err != nil {
		return Outlook{}, err
	}
	zone = cmp.Or(zone, s.Location())
	o := look(s, from(zone), zone, n)
	if len(j.After.Jobs) > 0 {
		o.Schedule = "after " + strings.Join(j.After.Jobs, ", ") + ", " + o.Schedule
	}
	o.EveryReplica, o.Paused = j.EveryReplica, j.Paused
	return o, nil
}

func look(s *ticks.Ticks, from time.Time, loc *time.Location, n int) Outlook {
	o := Outlook{Schedule: s.Words(), Text: s.Text(), Zone: loc.String(), Ticks: []Upcoming{},
		Warnings: append([]string{}, s.Warnings(from)...)}
	begin := from
	for range n {
		if from = s.Next(from); from.IsZero() {
			break
		}
		local := from.In(loc)
		o.Ticks = append(o.Ticks, Upcoming{Tick: from, Local: local, Clock: clockChange(local), Moved: dayText(s.MovedFrom(from))})
	}
	if len(o.Ticks) > 0 {
		o.LeftOut = leftOut(s, begin, o.Ticks[len(o.Ticks)-1].Tick)
	}
	return o
}

// leftMost is how many excluded days are shown.
const leftMost = 20

// leftOut are the excluded days between two instants on which the schedule has ticks.
func leftOut(s *ticks.Ticks, from, to time.Time) (days []LeftDay) {
	for _, l := range s.LeftOut(from, to, leftMost) {
		days = append(days, LeftDay{Day: dayText(l.Day), Ticks: l.Ticks, By: l.By, Only: l.Only, To: dayText(l.To)})
	}
	return days
}

// dayText is empty for no day.
func dayText(d calendar.Day) string {
	if d == (calendar.Day{}) {
		return ""
	}
	return d.String()
}

// dated adds the day of the week to a date.
func dated(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return at.Format("Mon " + time.DateOnly)
}

// MovedWords say from which day the tick has moved; empty: from none.
func (u Upcoming) MovedWords() string {
	if u.Moved == "" {
		return ""
	}
	return "moved from " + dated(u.Moved)
}

// Words say what became of the ticks of the day, and why.
func (l LeftDay) Words() string {
	why := "a day of " + strings.Join(l.By, ", ")
	if l.Only {
		why = "no day of " + strings.Join(l.By, ", ")
	}
	what := "left out"
	if l.To != "" {
		what = "moved to " + dated(l.To)
	}
	return fmt.Sprintf("%s: %s %s, %s", dated(l.Day), format.Plural(l.Ticks, "tick"), what, why)
}

// clockChange says how the clock of the zone changes on the local date of at.
func clockChange(at time.Time) string {
	begin, end := at.ZoneBounds()
	for _, change := range []time.Time{begin, end} {
		if change.IsZero() {
			continue
		}
		before := change.Add(-time.Second)
		_, old := before.Zone()
		_, offset := change.Zone()
		day := at.Format(time.DateOnly)
		if old == offset || day != before.Format(time.DateOnly) && day != change.Format(time.DateOnly) {
			continue
		}
		way := "forward"
		if offset < old {
			way = "back"
		}
		return "clock goes " + way + " on " + change.Format(time.DateOnly)
	}
	return ""
}

// AwaitWords says what a tick that has come waits for.
func AwaitWords(jobs string) string { return "waits for " + jobs }
