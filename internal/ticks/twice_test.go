package ticks_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

// A day that clocks go back to over midnight is shown once more after the day that follows it. At 00:01 the clock of St. John's
// shows 23:01 again, at 02:00 that of Casey shows 23:00.
func TestDayShownTwice(t *testing.T) {
	by := map[string]calendar.Calendar{}
	for _, c := range drawn() {
		by[c.Name()] = c
	}
	closed := func(days ...string) []calendar.Calendar { return list(calendar.Dates("closed", days...)) }
	const often = "*/20 0-3,22-23 * * *"
	for _, tt := range []struct {
		name, text, zone string
		limits           ticks.Limits
		from, to         string
		want             string // the ticks between them
	}{
		{"the day before is closed", often, "America/St_Johns", ticks.Limits{Except: list(by["days 20"])}, "2001-10-27T00:00:00Z", "2001-10-28T04:00:00Z",
			"27 00:30, 27 00:50, 27 01:10, 27 01:30, 27 01:50, 27 02:10, 28 02:30, 28 03:30, 28 03:50"},
		{"and until a date", often, "America/Goose_Bay", ticks.Limits{Except: list(by["days 20"]), Until: date("2001-11-03").Add(39 * time.Hour / 2)}, "2001-10-27T00:00:00Z", "2001-10-28T04:30:00Z",
			"27 01:00, 27 01:20, 27 01:40, 27 02:00, 27 02:20, 27 02:40, 28 03:00, 28 04:00, 28 04:20"},
		{"the day after is closed", often, "America/St_Johns", ticks.Limits{Except: list(by["days 80"])}, "2002-10-26T12:00:00Z", "2002-10-28T03:00:00Z",
			"27 00:30, 27 00:50, 27 01:10, 27 01:30, 27 01:50, 27 02:10, 27 02:50, 27 03:10"},
		{"no day is open after it", "*/20 */23 * * *", "America/St_Johns", ticks.Limits{Only: list(calendar.Dates("open", "2002-10-26"))}, "2002-10-26T05:00:00Z", "2002-10-28T05:00:00Z",
			"27 01:30, 27 01:50, 27 02:10, 27 02:50, 27 03:10"},
		{"no day is open before it", "*/20 */23 * * *", "America/St_Johns", ticks.Limits{Only: list(calendar.Dates("open", "2002-10-27"))}, "2002-10-26T05:00:00Z", "2002-10-28T05:00:00Z",
			"27 02:30, 27 03:30, 27 03:50, 27 04:10, 28 02:30, 28 02:50, 28 03:10"},
		{"two hours, the day before is closed", "30 0-1,*/23 * * *", "Antarctica/Casey", ticks.Limits{Except: closed("2010-03-04")}, "2010-03-03T14:00:00Z", "2010-03-05T14:00:00Z",
			"04 13:30, 04 14:30, 04 16:30, 04 17:30"},
		{"two hours, the day after is closed", "30 0-1,*/23 * * *", "Antarctica/Casey", ticks.Limits{Except: closed("2010-03-05")}, "2010-03-03T14:00:00Z", "2010-03-05T14:00:00Z",
			"03 14:30, 04 12:30, 04 15:30"},
		{"moved forward, the day before has a tick the second time alone", "0 0 28 10 * ; @every 45h", "America/St_Johns",
			ticks.Limits{Except: closed("2001-10-28"), Shift: ticks.ShiftNext}, "2001-10-27T00:00:00Z", "2001-10-29T04:00:00Z", "28 03:00, 29 03:30"},
		{"moved back, the day after has a tick the first time alone", "0 0 28 10 * ; */20 23 27 10 *", "America/St_Johns",
			ticks.Limits{Except: closed("2001-10-27"), Shift: ticks.ShiftPrevious}, "2001-10-27T00:00:00Z", "2001-10-29T04:00:00Z", "27 01:30, 27 01:50, 27 02:10, 28 02:30"},
	} {
		s, want := limit(t, tt.text, tt.zone, tt.limits), strings.Split(tt.want, ", ")
		from, to := stamp(tt.from), stamp(tt.to)
		var got, back []string
		for at := s.Next(from); !at.IsZero() && !at.After(to); at = s.Next(at) {
			got = append(got, at.Format("02 15:04"))
		}
		for at := s.Last(to); at.After(from); at = s.Last(at.Add(-1)) {
			back = append(back, at.Format("02 15:04"))
		}
		slices.Reverse(back)
		if !slices.Equal(got, want) || !slices.Equal(back, want) {
			t.Errorf("%s: got %q, and %q backwards, want %q", tt.name, got, back, want)
		}
	}
}

func stamp(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

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
