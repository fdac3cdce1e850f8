package format_test

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
)

// A long reason stays in its line. Ticks that nobody has counted, and a run without an end, are shown as such.
func TestOutcomes(t *testing.T) {
	noon := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	hour := event.Outcome{From: noon.Add(-time.Hour), Tick: noon, Status: event.Missed}
	many, long := hour, event.Outcome{Tick: noon, Start: noon, Status: event.Failed, Reason: strings.Repeat("ä long\nstory ", 50)}
	many.Count, many.AtLeast = 100, true
	cut := string([]rune(strings.Repeat("ä long story ", 50))[:99]) + "…"
	for _, test := range []struct {
		of                  event.Outcome
		outcome, span, took string
	}{
		{hour, "missed", "after 2026-03-29 11:00:00Z .. 2026-03-29 12:00:00Z (not counted)", "-"},
		{many, "at least 100 missed", "after 2026-03-29 11:00:00Z .. 2026-03-29 12:00:00Z (at least 100)", "-"},
		{long, "failed (" + cut + ")", "2026-03-29 12:00:00Z", "-"},
	} {
		outcome, span, took := format.Outcome(&test.of), format.Clock{}.Span(&test.of), format.Took(&test.of)
		if outcome != test.outcome || span != test.span || took != test.took {
			t.Errorf("got %q, %q, %q, want %+v", outcome, span, took, test)
		}
	}
}

// What is left out of a span is less than a tenth of it.
func TestRoughly(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m30s", 2 * time.Minute: "2m", 12*time.Minute + 59*time.Second: "12m",
		time.Hour: "1h", time.Hour + 59*time.Minute: "1h59m", time.Hour + 59*time.Second: "1h", 23*time.Hour + 58*time.Minute: "23h", 47*time.Hour + 59*time.Minute: "47h",
		2*day + 23*time.Hour: "2d23h", 13*day + 7*time.Hour: "13d",
	} {
		if got := format.Roughly(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

// A span is shown in two units at most.
func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 135 * time.Millisecond: "135ms", 1234567 * time.Microsecond: "1.235s", 12345 * time.Millisecond: "12.3s",
		2 * time.Minute: "2m", 3*time.Hour + 2*time.Minute + time.Second: "3h2m", 50 * time.Hour: "2d2h",
	} {
		if got := format.Lasted(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

// A day begins at the first of two midnights, or after the gap that midnight is in.
func TestMidnight(t *testing.T) {
	for day, want := range map[string]string{
		"2021-10-29 Asia/Amman": "2021-10-28 21:00:00Z", "2024-04-26 Africa/Cairo": "2024-04-25 22:00:00Z",
		"2024-11-03 America/Havana": "2024-11-03 04:00:00Z", "2026-03-29 Europe/Berlin": "2026-03-28 23:00:00Z",
	} {
		date, name, _ := strings.Cut(day, " ")
		zone, err := time.LoadLocation(name)
		at, wrong := time.Parse(time.DateOnly, date)
		if got := format.Stamp(format.Midnight(at, zone)); got != want || err != nil || wrong != nil {
			t.Errorf("%s: got %s, %v, %v, want %s", day, got, err, wrong, want)
		}
	}
}
