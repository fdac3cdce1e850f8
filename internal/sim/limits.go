package sim

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// west is a zone whose midnight is within many simulations, which begin in the first hour of UTC.
const west = "Etc/GMT+1"

// The days before and after that midnight, which is at turn: calendars know no day before 2000, so that
// simulations with limits begin a day later.
const before, after = "2000-01-01", "2000-01-02"

var turn = time.Date(2000, 1, 2, 1, 0, 0, 0, time.UTC)

// A job without any tick to come would be refused.
const far = "2060-01-01"

var farOff = time.Date(2060, 1, 1, 1, 0, 0, 0, time.UTC)

// limitTicks draws bounds and days of the ticks of some jobs. Whatever has other ticks in another version has none.
func limitTicks(all []trace.Definition, seed uint64) {
	r := newRoll(seed, 0, "limits")
	begin := turn.Add(-time.Hour).Add(newRoll(seed, 0, "start").between(0, time.Hour))
	for i := range all {
		some, days, bounds, from, until := r.chance(0.3), r.below(8), r.below(4), begin.Add(r.between(0, 20*time.Minute)), begin.Add(r.between(20*time.Minute, 40*time.Minute))
		d := &all[i]
		if !some || d.Follows != "" || !slices.Contains([]string{"often", "count", "hourly", "drawn", "slow"}, d.Name) {
			continue
		}
		limitDays(d, days)
		bounded := *d
		switch bounds {
		case 0:
			bounded.Limits.From = from
		case 1:
			bounded.Limits.Until = until
		case 2:
			bounded.Limits.From, bounded.Limits.Until = from, until
		}
		if bounded.Bound(from, until); !bounded.After(turn.AddDate(0, 0, -1)).Before(farOff.AddDate(1, 0, 0)) {
			continue // a job without a tick is refused
		}
		bounded.Open = d.Open
		bounded.Bound(bounded.Limits.From, bounded.Limits.Until)
		*d = bounded
	}
	keepAlike(all)
	follow(all)
}

// limitDays gives a job no ticks on one of the days. Its ticks are the same on each day, so that those that
// move from there to the other day meet others; those of a date alone meet none.
func limitDays(d *trace.Definition, days int) {
	day := 24 * time.Hour
	d.Zone = west
	dated := func(date string) {
		if text, ok := strings.CutSuffix(d.Schedule, " * * *"); ok {
			d.Schedule = text + date
		}
	}
	l, never := &d.Limits, time.Time{}
	switch days {
	case 0, 1:
		l.Except, l.Shift = before, []soloist.Shift{"", soloist.ShiftNext}[days]
		d.Bound(turn, never)
	case 2, 3:
		l.Except, l.Shift = after, []soloist.Shift{"", soloist.ShiftPrevious}[days-2]
		d.Open = []trace.Time{{Before: turn}, {From: turn.Add(day)}}
	case 4:
		l.Only = before + " " + far
		d.Open = []trace.Time{{From: turn.Add(-day), Before: turn}, {From: farOff, Before: farOff.Add(day)}}
	case 5:
		l.Only = after + " " + far
		d.Open = []trace.Time{{From: turn, Before: turn.Add(day)}, {From: farOff, Before: farOff.Add(day)}}
	case 6:
		if dated(" 1 1 *"); strings.HasSuffix(d.Schedule, " 1 1 *") {
			l.Except, l.Shift = before, soloist.ShiftNext
			d.Open = []trace.Time{{From: turn, Before: turn.Add(day)}, {From: turn.AddDate(1, 0, -1), Before: turn.AddDate(1, 0, 0)}} // the next ones
		}
	default:
		d.Zone = ""
	}
}

// limited reports whether a program has such a job.
func limited(all []trace.Definition) bool {
	return slices.ContainsFunc(all, func(d trace.Definition) bool { return d.Limits != trace.Limits{} })
}

// limits gives a job what limits its ticks.
func limits(j *soloist.Job, d *trace.Definition) {
	if d.Follows != "" { // it has the ticks of another job
		return
	}
	l := &d.Limits
	j.From, j.Until, j.Shift = l.From, l.Until, l.Shift
	if l.Except != "" {
		j.Except = append(j.Except, dates("except", l.Except))
	}
	if l.Only != "" {
		j.Only = append(j.Only, dates("only", l.Only))
	}
}

// dates is a calendar of days. It is the same one each time: a program asks a new calendar for each day of a century.
func dates(name, days string) soloist.Calendar {
	c, ok := calendars.Load(name + " " + days)
	if !ok {
		c, _ = calendars.LoadOrStore(name+" "+days, calendar.Dates(name, strings.Fields(days)...))
	}
	return c.(soloist.Calendar)
}

var calendars sync.Map

// unlimited has a job its ticks always.
func unlimited(d *trace.Definition) { d.Zone, d.Open, d.Limits = "", nil, trace.Limits{} }
