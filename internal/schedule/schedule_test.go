package schedule_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

func parse(t testing.TB, text, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text, zone, "nightly-report")
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", text, zone, err)
	}
	return s
}

func utc(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// zoned has texts with zones of their own, whose clocks change on other days.
const zoned = "CRON_TZ=America/New_York 0 9 * * 1-5 ; TZ=Europe/London 0 14 * * 1-5"

// TestNextAndLast has intervals, rare ticks, and an instant at which the clock shows again what it has shown before.
func TestNextAndLast(t *testing.T) {
	for _, test := range []struct{ text, after, next, last string }{
		{"@every 5m", "2026-11-21 10:02:17", "2026-11-21 10:05:00", "2026-11-21 10:00:00"},
		{"@every 5m", "2026-11-21 10:03:48", "2026-11-21 10:05:00", "2026-11-21 10:00:00"},
		{"@every 5m", "2026-11-21 10:05:00", "2026-11-21 10:10:00", "2026-11-21 10:05:00"},
		{"@every 1s", "2026-11-21 10:05:00", "2026-11-21 10:05:01", "2026-11-21 10:05:00"},
		{"@every 168h", "1970-01-09 00:00:00", "1970-01-15 00:00:00", "1970-01-08 00:00:00"},
		{"@every 7s", "1969-12-31 23:59:59", "1970-01-01 00:00:00", "1969-12-31 23:59:53"},
		{"ncrontab 0 0 0 13 * 5", "2026-11-13 00:00:00", "2027-08-13 00:00:00", "2026-11-13 00:00:00"},
		{"ncrontab 0 0 29 feb M", "2026-01-01 00:00:00", "2044-02-29 00:00:00", "2016-02-29 00:00:00"},
		{"ncrontab 0 0 29 2 3", "2080-01-01 00:00:00", "2096-02-29 00:00:00", "2068-02-29 00:00:00"},
		{"ncrontab 0 0 29 2 6", "2076-02-29 00:00:00", "2116-02-29 00:00:00", "2076-02-29 00:00:00"}, // 40 years
		{"0 0 29 2 *", "2097-01-01 00:00:00", "2104-02-29 00:00:00", "2096-02-29 00:00:00"},
		{"0 0 * 2 fri#5", "2036-02-29 00:00:00", "2064-02-29 00:00:00", "2036-02-29 00:00:00"},
		{"0 0 * 2 sat#5", "2076-02-29 00:00:00", "2116-02-29 00:00:00", "2076-02-29 00:00:00"}, // 40 years
		{"0 0 29W 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00:00", "2096-02-29 00:00:00"},
		{"0 0 L-28 2 *", "2026-01-01 00:00:00", "2028-02-01 00:00:00", "2024-02-01 00:00:00"},
		{"0 0 29 2 mon", "2026-02-24 00:00:00", "2027-02-01 00:00:00", "2026-02-23 00:00:00"},
		{"0 0 * 2 sat#5 ; 0 0 29W 2 *", "2076-03-01 00:00:00", "2080-02-29 00:00:00", "2076-02-29 00:00:00"},
		{"0 0 13 * 5", "2026-11-14 00:00:00", "2026-11-20 00:00:00", "2026-11-13 00:00:00"},
		{"0 0 31 * *", "2026-02-01 00:00:00", "2026-03-31 00:00:00", "2026-01-31 00:00:00"},
		{zoned, "2026-01-05 14:00:00", "2026-01-06 14:00:00", "2026-01-05 14:00:00"},                            // both at once
		{zoned, "2026-03-10 13:00:00", "2026-03-10 14:00:00", "2026-03-10 13:00:00"},                            // while the zones are four hours apart
		{"TZ=America/New_York 30 1 * * *", "2026-11-01 06:10:00", "2026-11-02 06:30:00", "2026-11-01 05:30:00"}, // 01:10 after 01:59
	} {
		s, at := parse(t, test.text, ""), utc(t, test.after)
		if got, want := s.Next(at), utc(t, test.next); !got.Equal(want) {
			t.Errorf("%s after %s: got %v, want %v", test.text, test.after, got, want)
		}
		if got, want := s.Last(at), utc(t, test.last); !got.Equal(want) {
			t.Errorf("%s at %s: got %v, want %v", test.text, test.after, got, want)
		}
	}
}

// TestEnds asks far outside the years that a job meets.
func TestEnds(t *testing.T) {
	far := time.Unix(1<<62, 0)
	for _, text := range []string{"* * * * *", "30 2 * * *", "@every 1h", "0 0 L * *", "0 0 * * 1 ; @every 1h"} {
		s := parse(t, text, "Europe/Berlin")
		if got := s.Next(far); !got.IsZero() {
			t.Errorf("%s: Next(far future) = %v, want none", text, got)
		}
		if got := s.Last(time.Unix(-1<<62, 0)); !got.IsZero() {
			t.Errorf("%s: Last(far past) = %v, want none", text, got)
		}
		if got := s.Next(time.Time{}); got.IsZero() || got.Year() != 1 {
			t.Errorf("%s: Next(zero) = %v, want year 1", text, got)
		}
		if got := s.Last(far); got.Year() != 9999 {
			t.Errorf("%s: Last(far future) = %v, want year 9999", text, got)
		}
		if got := s.Count(time.Unix(-1<<62, 0), far, 10); got != 10 {
			t.Errorf("%s: Count(everything, 10) = %d, want 10", text, got)
		}
		if got := s.Count(s.Last(far), far, 10); got != 0 {
			t.Errorf("%s: Count(after the last, 10) = %d, want 0", text, got)
		}
	}
}

// TestZoneRules holds the rules read by Parse against package time in all their years: noon is noon.
func TestZoneRules(t *testing.T) {
	for _, zone := range awkward {
		s := parse(t, "0 12 * * *", zone)
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for at := year(1970).Add(48 * time.Hour); at.Year() < 2200; at = at.Add(53 * time.Hour) {
			next := s.Next(at)
			if got := next.In(loc).Format("15:04:05"); got != "12:00:00" {
				t.Fatalf("%s: after %v comes %v, there %s, want noon", zone, at, next, got)
			}
			if gap := next.Sub(at); gap > 27*time.Hour && zone != "Pacific/Apia" {
				t.Fatalf("%s: %v after %v comes noon", zone, gap, at)
			}
		}
	}
}
