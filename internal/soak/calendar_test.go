package soak_test

import (
	"testing"
	"time"
)

// A rule says by its own words what a schedule means: at which minutes of the
// clock on the wall it is due. A fixed time is due once on each local day, also
// when the clocks jump over it or show it twice; the others go by what the clock
// shows.
type rule struct {
	text  string // the schedule that it stands beside
	due   func(wall time.Time) bool
	fixed bool
}

// A calendar has all minutes of a time and says at which a schedule is due. It
// is written down minute by minute, by nothing but the clock of the zone.
type calendar struct {
	from time.Time
	due  []bool
}

// A stretch of time.
type stretch struct{ from, to time.Time }

// write walks through the time.
func (r rule) write(over stretch, zone *time.Location) calendar {
	c := calendar{over.from, make([]bool, over.to.Sub(over.from)/time.Minute)}
	newest := onWall(over.from.Add(-time.Minute), zone)
	for m := range c.due {
		now := onWall(c.at(m), zone)
		switch {
		case !r.fixed:
			c.due[m] = r.due(now)
		case now.After(newest): // else the clock shows this again
			for newest.Before(now) { // more than a minute where it jumps
				newest = newest.Add(time.Minute)
				c.due[m] = c.due[m] || r.due(newest)
			}
		}
	}
	return c
}

// onWall is what the clock shows, as if it never jumped.
func onWall(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

func (c calendar) at(minute int) time.Time { return c.from.Add(time.Duration(minute) * time.Minute) }

// minute returns the number of the first minute that is not before t.
func (c calendar) minute(t time.Time) int {
	d := t.Sub(c.from)
	return int((d + time.Minute - 1) / time.Minute)
}

// has reports whether there is a tick at t.
func (c calendar) has(t time.Time) bool {
	m := c.minute(t)
	return m >= 0 && m < len(c.due) && c.at(m).Equal(t) && c.due[m]
}

// count is the number of ticks from from up to, and without, to.
func (c calendar) count(s stretch) (n int) {
	for m := max(0, c.minute(s.from)); m < min(len(c.due), c.minute(s.to)); m++ {
		if c.due[m] {
			n++
		}
	}
	return n
}

// The year that is simulated has 366 days. What its calendars have to say is
// known without a program.
func TestCalendar(t *testing.T) {
	year := theYear(t)
	want := map[string]int{
		everyMinute.text: 366 * 1440, everyFive.text: 366 * 288, everyQuarter.text: 366 * 96,
		onTheHour.text: 366 * 24, atHalfPast.text: 366 * 24, atTwenty.text: 366 * 24, atQuarterTo.text: 366 * 24,
		everySixHours.text: 366 * 4, nightly.text: 366, afterMidnight.text: 366, inTheMorning.text: 366,
		mondays.text:   52,
		monthEnds.text: 7, leapDay.text: 1,
		atNight.text: 366*6 - 3 + 3, // 02:00, 02:20 and 02:40 do not come, and come twice
	}
	for _, r := range rules {
		if n := r.write(year, berlin(t)).count(year); n != want[r.text] {
			t.Errorf("%s is due %d times, want %d", r.text, n, want[r.text])
		}
	}
	for text, at := range map[string]time.Time{
		"after the gap":          time.Date(2028, 3, 26, 1, 0, 0, 0, time.UTC),
		"the first of the fold":  time.Date(2028, 10, 29, 0, 30, 0, 0, time.UTC),
		"on a day without jumps": time.Date(2028, 7, 1, 0, 30, 0, 0, time.UTC),
	} {
		if !nightly.write(year, berlin(t)).has(at) {
			t.Errorf("%s is not due %s, at %s", nightly.text, text, at)
		}
	}
}
