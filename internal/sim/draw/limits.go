package draw

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Redate draws which edition of a calendar some jobs of a version have. The editions have one name and other days, all of them
// far away: the ticks of a seed are the same, and the definitions are not.
func Redate(all []trace.Definition, r *Roll) {
	edition := Pick(r, "", "2050-01-01", "2050-01-02", "2051-01-01..2051-12-31")
	for i := range all {
		d := &all[i]
		switch name := cmp.Or(d.Whole, d.Name); {
		case d.Follows != "": // it has the days of the job whose ticks it has
			first, _, _ := strings.Cut(d.Follows, ", ")
			if n := slices.IndexFunc(all[:i], func(o trace.Definition) bool { return cmp.Or(o.Whole, o.Name) == first }); n >= 0 {
				d.Closed = all[n].Closed
			}
		case d.Every > 0 && slices.Contains([]string{"count", "drawn", "hourly"}, name):
			d.Closed = edition
		default:
			d.Closed = ""
		}
	}
}

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
	r := New(seed, 0, "limits")
	begin := turn.Add(-time.Hour).Add(New(seed, 0, "start").Between(0, time.Hour))
	for i := range all {
		some, days, bounds, from, until := r.Chance(0.3), r.Below(8), r.Below(4), begin.Add(r.Between(0, 20*time.Minute)), begin.Add(r.Between(20*time.Minute, 40*time.Minute))
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
	Follow(all)
}

// limitDays gives a job no ticks on one of the days. Its ticks have the same times on each day, so that a tick which moves to
// the other day meets a tick there, unless the schedule has a date.
func limitDays(d *trace.Definition, days int) {
	day := 24 * time.Hour
	d.TimeZone = west
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
		d.TimeZone = ""
	}
}

// Limited reports whether a program has such a job.
func Limited(all []trace.Definition) bool {
	return slices.ContainsFunc(all, func(d trace.Definition) bool { return d.Limits != trace.Limits{} })
}

// unlimited has a job its ticks always.
func unlimited(d *trace.Definition) { d.TimeZone, d.Open, d.Limits = "", nil, trace.Limits{} }
