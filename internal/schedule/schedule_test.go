package schedule_test

import (
	"strings"
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

// local lists the ticks in (after, to] as the zone's clock shows them, with the offset.
func local(t testing.TB, s *schedule.Schedule, zone, after, to string) string {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	from, end := utc(t, after), utc(t, to)
	var list []string
	for at := s.Next(from); !at.IsZero() && !at.After(end); at = s.Next(at) {
		list = append(list, at.In(loc).Format("02 15:04 -07:00"))
	}
	return strings.Join(list, ", ")
}

// TestDaylight has what cron libraries get wrong, and what is awkward about zones, as far as docs/schedules.md and its further rows
// leave it out. The stretch is in UTC.
func TestDaylight(t *testing.T) {
	for _, test := range []struct {
		why, zone, text, after, to, want string
	}{
		{"hourly takes both passes", "America/New_York", "@hourly", "2026-11-01 04:30:00", "2026-11-01 07:30:00",
			"01 01:00 -04:00, 01 01:00 -05:00, 01 02:00 -05:00"},
		{"a range of hours is fixed", "America/New_York", "0 0-23 * * *", "2026-11-01 04:30:00", "2026-11-01 07:30:00",
			"01 01:00 -04:00, 01 02:00 -05:00"},
		{"a gap collapses", "America/New_York", "0,20,40 2,3 * * *", "2026-03-08 05:00:00", "2026-03-08 12:00:00",
			"08 03:00 -04:00, 08 03:20 -04:00, 08 03:40 -04:00"},
		{"midnight comes once, 23 h twice", "America/Santiago", "0 0,23 * * *", "2026-04-04 12:00:00", "2026-04-05 12:00:00",
			"04 23:00 -03:00, 05 00:00 -04:00"},
		{"midnight comes twice", "America/Havana", "@daily", "2026-10-31 12:00:00", "2026-11-02 12:00:00",
			"01 00:00 -04:00, 02 00:00 -05:00"},
		{"midnight is absent", "Asia/Beirut", "0 0 * * *", "2026-03-28 12:00:00", "2026-03-30 12:00:00",
			"29 01:00 +03:00, 30 00:00 +03:00"},
		{"midnight is absent", "America/Sao_Paulo", "0 0 * * *", "2018-11-03 12:00:00", "2018-11-05 12:00:00",
			"04 01:00 -02:00, 05 00:00 -02:00"},
		{"30 minutes back", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04 01:00:00", "2026-04-06 01:00:00",
			"05 01:45 +11:00, 06 01:45 +10:30"},
		{"a date is lost, one tick for two", "Pacific/Apia", "0 0 * * *", "2011-12-29 00:00:00", "2012-01-01 00:00:00",
			"29 00:00 -10:00, 31 00:00 +14:00, 01 00:00 +14:00"},
		{"only the lost date", "Pacific/Apia", "0 12 30 12 *", "2011-12-01 00:00:00", "2012-12-31 00:00:00",
			"31 00:00 +14:00, 30 12:00 +14:00"},
		{"winter is the saving time", "Europe/Dublin", "30 1 * * *", "2026-03-28 12:00:00", "2026-03-30 12:00:00",
			"29 02:00 +01:00, 30 01:30 +01:00"},
		{"winter is the saving time", "Europe/Dublin", "30 1 * * *", "2026-10-24 12:00:00", "2026-10-26 12:00:00",
			"25 01:30 +01:00, 26 01:30 +00:00"},
		{"the last Sunday has the gap", "Europe/Berlin", "30 2 * * sunL", "2026-03-01 12:00:00", "2026-05-01 12:00:00",
			"29 03:00 +02:00, 26 02:30 +02:00"},
		{"the last Sunday has the fold", "Europe/Berlin", "*/30 2 * * sunL", "2026-10-01 12:00:00", "2026-11-01 12:00:00",
			"25 02:00 +02:00, 25 02:30 +02:00, 25 02:00 +01:00, 25 02:30 +01:00"},
		{"the last date is lost", "Pacific/Apia", "0 12 L-1 12 *", "2011-12-01 00:00:00", "2012-12-31 00:00:00",
			"31 00:00 +14:00, 30 12:00 +14:00"},
		{"two texts meet after the gap", "America/New_York", "30 2 * * * ; 0 3 * * *", "2026-03-07 12:00:00", "2026-03-09 12:00:00",
			"08 03:00 -04:00, 09 02:30 -04:00, 09 03:00 -04:00"},
		{"each text has its kind", "America/New_York", "30 1 * * * ; */30 1 * * *", "2026-11-01 04:00:00", "2026-11-01 12:00:00",
			"01 01:00 -04:00, 01 01:30 -04:00, 01 01:00 -05:00, 01 01:30 -05:00"},
		{"the change is at 00:01", "America/St_Johns", "1 0 * * *", "2010-03-13 12:00:00", "2010-03-15 12:00:00",
			"14 01:01 -02:30, 15 00:01 -02:30"},
	} {
		s := parse(t, test.text, test.zone)
		if got := local(t, s, test.zone, test.after, test.to); got != test.want {
			t.Errorf("%s, %s %q:\n got %s\nwant %s", test.why, test.zone, test.text, got, test.want)
		}
	}
}

// TestYear counts a whole year: the zones in which a daily job is lost or doubled elsewhere.
func TestYear(t *testing.T) {
	from, to := utc(t, "2026-01-01 12:00:00"), utc(t, "2027-01-01 12:00:00")
	for _, zone := range awkward {
		for _, text := range []string{"@daily", "30 0 * * *", "30 1 * * *", "30 2 * * *", "45 23 * * *"} {
			if got := parse(t, text, zone).Count(from, to, 1000); got != 365 {
				t.Errorf("%q in %s: %d ticks in 2026, want 365", text, zone, got)
			}
		}
	}
}

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
