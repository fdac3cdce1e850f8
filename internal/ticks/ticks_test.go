package ticks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

func limit(t testing.TB, text, zone string, l ticks.Limits) *ticks.Ticks {
	t.Helper()
	s, err := schedule.Parse(text, zone, "job")
	if err != nil {
		t.Fatal(err)
	}
	all, err := ticks.New(s, l)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func list(all ...calendar.Calendar) []calendar.Calendar { return all }

func date(text string) time.Time {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return at
}

// What is left out is told with the calendars that do it, and where the ticks go.
func TestLeftOut(t *testing.T) {
	closed := calendar.Dates("closed", "2026-12-24..2026-12-26")
	for _, tt := range []struct {
		name   string
		limits ticks.Limits
		want   string
	}{
		{"nothing", ticks.Limits{}, ""},
		{"except", ticks.Limits{Except: list(calendar.Weekends(), closed)}, "2026-12-24 2 closed, 2026-12-25 2 closed, 2026-12-26 2 closed+weekends, 2026-12-27 2 weekends"},
		{"next", ticks.Limits{Except: list(closed), Shift: ticks.ShiftNext}, "2026-12-24 2 closed to 2026-12-27, 2026-12-25 2 closed to 2026-12-27, 2026-12-26 2 closed to 2026-12-27"},
		{"previous", ticks.Limits{Except: list(closed), Shift: ticks.ShiftPrevious}, "2026-12-24 2 closed to 2026-12-23, 2026-12-25 2 closed to 2026-12-23, 2026-12-26 2 closed to 2026-12-23"},
		{"only", ticks.Limits{Only: list(calendar.Fields("* * 1-25 * *"))}, "2026-12-26 2 not * * 1-25 * *, 2026-12-27 2 not * * 1-25 * *, 2026-12-28 2 not * * 1-25 * *"},
	} {
		var got []string
		for _, l := range limit(t, "0 9,17 * * *", "Europe/Berlin", tt.limits).LeftOut(date("2026-12-23"), date("2026-12-29"), 20) {
			text := fmt.Sprint(l.Day, " ", l.Ticks, " ")
			if l.Only {
				text += "not "
			}
			text += strings.Join(l.By, "+")
			if l.To != (calendar.Day{}) {
				text += " to " + l.To.String()
			}
			got = append(got, text)
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A tick that has moved is told with its day; one that the schedule itself names is not.
func TestMovedFrom(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string
	}{
		{"0 12 * * *", "2026-11-27 -, 2026-11-30 -, 2026-12-01 -"},
		{"0 12 * * fri,sat", "2026-11-27 -, 2026-11-30 2026-11-28, 2026-12-04 -"},
		{"0 12 29 * *", "2026-11-30 2026-11-29, 2026-12-29 -, 2027-01-29 -"},
	} {
		s := limit(t, tt.text, "America/Santiago", ticks.Limits{Except: list(calendar.Weekends()), Shift: ticks.ShiftNext})
		var got []string
		for at := s.Next(date("2026-11-27")); len(got) < 3; at = s.Next(at) {
			from := "-"
			if d := s.MovedFrom(at); d != (calendar.Day{}) {
				from = d.String()
			}
			got = append(got, at.Format(time.DateOnly)+" "+from)
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

// Clocks of Nuuk go from 23:00 to midnight: a tick that moves into that hour is on the day after it, even if that is closed.
func TestMovedFromOverMidnight(t *testing.T) {
	for _, text := range []string{"30 23 * * fri", "30 23 * * fri ; 0 0 * * sun"} {
		s := limit(t, text, "America/Nuuk", ticks.Limits{Except: list(calendar.Dates("closed", "2024-03-29", "2024-03-31")), Shift: ticks.ShiftNext})
		at := s.Next(date("2024-03-29"))
		if from := s.MovedFrom(at); at.Format(time.RFC3339) != "2024-03-31T01:00:00Z" || from.String() != "2024-03-29" {
			t.Errorf("%s: got %v, moved from %v", text, at, from)
		}
	}
}

// The text has what every replica can read. The sums have what may differ under it.
func TestSums(t *testing.T) {
	zoned := limit(t, "30 2 * * *", "Europe/Berlin", ticks.Limits{})
	interval := limit(t, "@every 5m", "Europe/Berlin", ticks.Limits{})
	a := limit(t, "30 2 * * *", "UTC", ticks.Limits{Except: list(calendar.Dates("closed", "2026-05-01"))})
	b := limit(t, "30 2 * * *", "UTC", ticks.Limits{Except: list(calendar.Dates("closed", "2026-05-02"))})
	past := limit(t, "30 2 * * *", "UTC", ticks.Limits{Except: list(calendar.Dates("closed", "2025-05-01", "2026-05-01"))})
	swapped := []*ticks.Ticks{limit(t, "@daily", "", ticks.Limits{Except: list(calendar.Weekends(), calendar.Dates("a", "2026-05-01"))}),
		limit(t, "@daily", "", ticks.Limits{Except: list(calendar.Dates("a", "2026-05-01"), calendar.Weekends())})}
	switch {
	case zoned.Text() != "CRON_TZ=Europe/Berlin 30 2 * * *" || len(zoned.ZoneSum()) != 8 || zoned.DaysSum() != "":
		t.Errorf("in a zone: %s", zoned)
	case interval.String() != "@every 5m0s":
		t.Errorf("an interval: %s", interval)
	case a.Text() != b.Text() || a.DaysSum() == b.DaysSum() || a.ZoneSum() != "":
		t.Errorf("other days: %s, %s", a, b)
	case past.DaysSum() != a.DaysSum():
		t.Errorf("a day of the past: %s, %s", past, a)
	case swapped[0].String() != swapped[1].String():
		t.Errorf("another order: %s, %s", swapped[0], swapped[1])
	}
}

// Replicas with other rules for the second zone of a schedule would name other ticks.
func TestSumOfSeveralZones(t *testing.T) {
	sum := func(text string) string { return limit(t, text, "", ticks.Limits{}).ZoneSum() }
	one := sum("CRON_TZ=America/New_York 0 9 * * *")
	if same := sum("CRON_TZ=America/New_York 0 9 * * * ; CRON_TZ=America/New_York 0 10 * * *"); same != one {
		t.Errorf("one zone twice: got %s, want %s", same, one)
	}
	both, other := sum("CRON_TZ=America/New_York 0 9 * * * ; TZ=Europe/London 0 14 * * *"), sum("CRON_TZ=America/New_York 0 9 * * * ; TZ=Europe/Kyiv 0 14 * * *")
	if both == one || both == other || sum("0 9 * * * ; TZ=Europe/London 0 14 * * *") == "" {
		t.Errorf("got %s, %s and %s", one, both, other)
	}
}

// Looking for a tick takes microseconds at most and allocates nothing, however rare ticks are.
func TestNextAllocatesNothing(t *testing.T) {
	for _, c := range rare {
		s := limit(t, c.text, c.zone, c.limits)
		at := date("2026-11-23")
		if n := testing.AllocsPerRun(100, func() { s.Next(at); s.Last(at) }); n > 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

// rare are the cases that take longest.
var rare = []struct {
	name, text, zone string
	limits           ticks.Limits
}{
	{"daily", "0 2 * * *", "Europe/Berlin", ticks.Limits{Except: list(calendar.Weekends())}},
	{"minutes", "* * * * *", "Europe/Berlin", ticks.Limits{Except: list(calendar.Weekends()), Shift: ticks.ShiftNext}},
	{"last-of-five", "0 0 29-31 * *", "Europe/Berlin", ticks.Limits{Only: list(calendar.Fields("* * * * fri")), Shift: ticks.ShiftPrevious}},
	{"leap-monday", "ncrontab 0 0 29 2 1", "Europe/Berlin", ticks.Limits{Except: list(calendar.Weekends())}},
	{"leap-only", "0 0 29 2 *", "America/New_York", ticks.Limits{Only: list(calendar.Fields("* * * * mon"))}},
	{"long-run", "0 3 * * *", "Europe/Berlin", ticks.Limits{Except: list(calendar.Fields("* * 2-31 * *")), Shift: ticks.ShiftNext}},
	{"christmas", "0 0 25 12 *", "Europe/Berlin", ticks.Limits{Except: list(calendar.Dates("years", "2026-01-01..2060-12-01"))}},
	{"fifth-friday", "ncrontab 0 0 29-31 * 5", "UTC", ticks.Limits{Except: list(calendar.Fields("* * * 1-11 *"))}},
	{"leap-not-monday", "0 0 29 2 mon", "Europe/Berlin", ticks.Limits{Except: list(calendar.Fields("* * * * mon"))}},
	{"fifth-in-february", "0 0 * * fri#5", "Europe/Berlin", ticks.Limits{Only: list(calendar.Fields("* * * 2 *"))}},
	{"fifth-moves", "0 0 * * fri#5", "Europe/Berlin", ticks.Limits{Except: list(calendar.Fields("* * 2-31 * *")), Shift: ticks.ShiftNext}},
}

func BenchmarkNext(b *testing.B) {
	for _, c := range rare {
		b.Run(c.name, func(b *testing.B) {
			s, at := limit(b, c.text, c.zone, c.limits), date("2026-11-23")
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}

// Bounds do not depend on the zone that they are given in, nor on parts of a second.
func TestBounds(t *testing.T) {
	berlin, _ := time.LoadLocation("Europe/Berlin")
	from := time.Date(2026, 5, 1, 2, 0, 0, 0, berlin)
	for _, tt := range []struct {
		limits ticks.Limits
		want   []string
	}{
		{ticks.Limits{From: from, Until: from.Add(3 * time.Hour)}, []string{"00:00", "01:00", "02:00"}},
		{ticks.Limits{From: from.Add(1), Until: from.Add(2*time.Hour + 1)}, []string{"01:00", "02:00"}},
		{ticks.Limits{From: from.Add(-1), Until: from.Add(1)}, []string{"00:00"}},
	} {
		s := limit(t, "@hourly", "", tt.limits)
		var got, back []string
		for at := s.Next(time.Time{}); !at.IsZero(); at = s.Next(at) {
			got = append(got, at.Format("15:04"))
		}
		for at := s.Last(date("2100-01-01")); !at.IsZero(); at = s.Last(at.Add(-1)) {
			back = append(back, at.Format("15:04"))
		}
		slices.Reverse(back)
		if n := s.Count(date("2000-01-01"), date("2100-01-01"), 100); !slices.Equal(got, tt.want) || !slices.Equal(back, tt.want) || n != len(tt.want) {
			t.Errorf("%s: got %q, %q and %d, want %q", s, got, back, n, tt.want)
		}
	}
}

// A tick moves by 31 days and no further.
func TestMaxShift(t *testing.T) {
	for _, tt := range []struct{ closed, want string }{{"2026-05-01..2026-05-31", "2026-06-01"}, {"2026-05-01..2026-06-01", "2027-05-01"}} {
		s := limit(t, "0 0 1 5 *", "", ticks.Limits{Except: list(calendar.Dates("closed", tt.closed)), Shift: ticks.ShiftNext})
		if got := s.Next(date("2026-01-01")).Format(time.DateOnly); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.closed, got, tt.want)
		}
	}
}
