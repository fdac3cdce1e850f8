package ticks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

// A day that clocks go back to over midnight is shown once more after the day that follows it. At 00:01 the clock of St. John's
// shows 23:01 again, at 02:00 that of Casey shows 23:00.

// A day that is shown twice is left out once, with its ticks of both times and no other.
func TestLeftOutShownTwice(t *testing.T) {
	for _, tt := range []struct{ text, closed, want string }{
		{"0 0 * * *", "2001-10-27..2001-10-28", "2001-10-27 1, 2001-10-28 1"},
		{"*/20 0,*/23 * * *", "2001-10-27..2001-10-28", "2001-10-27 8, 2001-10-28 7"},
		{"*/20 0,*/23 * * *", "2001-10-27", "2001-10-27 8"},
		{"*/20 0,*/23 * * *", "2001-10-28", "2001-10-28 7"},
	} {
		var got []string
		s := limit(t, tt.text, "America/St_Johns", ticks.Limits{Except: list(calendar.Dates("closed", tt.closed))})
		for _, l := range s.LeftOut(date("2001-10-27"), date("2001-11-03"), 20) {
			got = append(got, fmt.Sprint(l.Day, " ", l.Ticks))
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s, closed on %s: got %s, want %s", tt.text, tt.closed, got, tt.want)
		}
	}
}

// around returns 32 calendars: each choice of the five days around an instant.
func around(at time.Time) (all []calendar.Calendar) {
	middle := number(calendar.DayOf(at))
	for choice := range uint64(32) {
		all = append(all, &some{fmt.Sprintf("%05b", choice), func(day calendar.Day) bool {
			n := number(day) + 2 - middle
			return n < 5 && choice>>n&1 == 1
		}})
	}
	return all
}

// twice compares each choice of five days around a change that shows a day once more after the next one, as Except and as Only,
// with each shift and each text.
func (c *tally) twice(t *testing.T, loc *time.Location, change time.Time) {
	begin, end := change.AddDate(0, 0, -4), change.AddDate(0, 0, 4)
	s := newStretch(loc, begin.AddDate(0, 0, -70), end.AddDate(0, 0, 70))
	c.stretches.Add(1)
	calendars := around(change.In(loc))
	chosen := texts
	if !*full {
		chosen = texts[len(texts)-3:] // those with most ticks around midnight
	}
	for _, text := range chosen {
		base, err := schedule.Parse(text, loc.String(), "job")
		if err != nil {
			t.Fatal(err)
		}
		for _, days := range calendars {
			for _, shift := range []ticks.Shift{ticks.NoShift, ticks.ShiftNext, ticks.ShiftPrevious} {
				c.compare(t, s, base, ticks.Limits{Except: list(days), Shift: shift}, begin, end)
				c.compare(t, s, base, ticks.Limits{Only: list(days), Shift: shift}, begin, end)
			}
		}
	}
}
