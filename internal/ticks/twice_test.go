package ticks_test

import (
	"fmt"
	"os"
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

// Each choice of five days around a change that shows a day once more after the next one is compared with the oracle, as Except and as Only, with
// each shift and each text.
func TestBruteForceTwice(t *testing.T) {
	zones, from, to := []string{"America/St_Johns", "Antarctica/Casey"}, year(2010), year(2011)
	if *full {
		text, err := os.ReadFile("../schedule/zones.txt")
		if err != nil {
			t.Fatal(err)
		}
		zones, from, to = strings.Fields(string(text)), year(2000), year(2038)
	}
	var c tally
	seen := map[string]bool{}
	for _, zone := range zones {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		at, keys := changes(loc, from, to)
		for i, change := range at {
			if !seen[keys[i]] && change.Add(-1).In(loc).Day() != change.In(loc).Day() && overMidnight(change.In(loc)) {
				seen[keys[i]] = true
				c.twice(t, zone, change)
			}
		}
	}
	c.done(t)()
}

// twice compares around one change.
func (c *tally) twice(t *testing.T, zone string, change time.Time) {
	begin, end := change.AddDate(0, 0, -4), change.AddDate(0, 0, 4)
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	s := newStretch(loc, begin.AddDate(0, 0, -70), end.AddDate(0, 0, 70))
	c.stretches.Add(1)
	calendars := around(change.In(loc))
	chosen := texts
	if !*full {
		chosen = texts[len(texts)-3:] // those with most ticks around midnight
	}
	for _, text := range chosen {
		base, err := schedule.Parse(text, zone, "job")
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
