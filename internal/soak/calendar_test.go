package soak_test

import (
	"testing"
	"time"
)

// A rule says in code when a schedule is due, by what a clock on the wall shows. A fixed time is due once on each local
// day, also when the clock jumps over it or shows it twice.
type rule struct {
	text  string // the schedule
	due   func(wall time.Time) bool
	fixed bool
}

var (
	everyFive     = rule{"*/5 * * * *", func(t time.Time) bool { return t.Minute()%5 == 0 }, false}
	onTheHour     = rule{"0 * * * *", func(t time.Time) bool { return t.Minute() == 0 }, false}
	atHalfPast    = rule{"30 * * * *", func(t time.Time) bool { return t.Minute() == 30 }, false}
	atNight       = rule{"*/20 2-3 * * *", func(t time.Time) bool { return t.Minute()%20 == 0 && t.Hour()/2 == 1 }, false}
	nightly       = rule{"30 2 * * *", func(t time.Time) bool { return t.Hour() == 2 && t.Minute() == 30 }, true}
	afterMidnight = rule{"10 1 * * *", func(t time.Time) bool { return t.Hour() == 1 && t.Minute() == 10 }, true}
)

// A calendar has all minutes from a time on, and says at which of them a schedule is due. It uses nothing of the program.
type calendar struct {
	from time.Time
	due  []bool
}

// write goes through the minutes up to to.
func (r rule) write(from, to time.Time, zone *time.Location) calendar {
	c := calendar{from, make([]bool, to.Sub(from)/time.Minute)}
	newest := onWall(from.Add(-time.Minute), zone)
	for m := range c.due {
		now := onWall(c.at(m), zone)
		switch {
		case !r.fixed:
			c.due[m] = r.due(now)
		case now.After(newest): // otherwise the clock shows this minute again
			for newest.Before(now) { // more than a minute where it jumps
				newest = newest.Add(time.Minute)
				c.due[m] = c.due[m] || r.due(newest)
			}
		}
	}
	return c
}

// onWall is what the clock shows, as a time in UTC.
func onWall(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

func (c calendar) at(minute int) time.Time { return c.from.Add(time.Duration(minute) * time.Minute) }

// minute is the number of the first minute that is not before t.
func (c calendar) minute(t time.Time) int {
	return int((t.Sub(c.from) + time.Minute - 1) / time.Minute)
}

func (c calendar) has(t time.Time) bool {
	m := c.minute(t)
	return m >= 0 && m < len(c.due) && c.at(m).Equal(t) && c.due[m]
}

// TestCalendar compares calendars of a year with what is known of it.
func TestCalendar(t *testing.T) {
	zone := load(t, "Europe/Berlin")
	from, to := time.Date(2028, 1, 1, 0, 0, 0, 0, zone), time.Date(2029, 1, 1, 0, 0, 0, 0, zone)
	for r, want := range map[*rule]int{
		&everyFive: 366 * 288, &onTheHour: 366 * 24, &nightly: 366, &afterMidnight: 366,
		&atNight: 366*6 - 3 + 3, // 02:00, 02:20 and 02:40 are left out in March, and come twice in October
	} {
		n := 0
		for _, due := range r.write(from, to, zone).due {
			if due {
				n++
			}
		}
		if n != want {
			t.Errorf("%s is due %d times, want %d", r.text, n, want)
		}
	}
	for what, at := range map[string]time.Time{
		"after the gap":             time.Date(2028, 3, 26, 1, 0, 0, 0, time.UTC),
		"at the first of two times": time.Date(2028, 10, 29, 0, 30, 0, 0, time.UTC),
		"on an ordinary day":        time.Date(2028, 7, 1, 0, 30, 0, 0, time.UTC),
	} {
		if !nightly.write(from, to, zone).has(at) {
			t.Errorf("%s is not due %s, at %s", nightly.text, what, at)
		}
	}
}

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}
