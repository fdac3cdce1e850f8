package schedule_test

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct{ name, text, zone string }{
		{"dense", "* * * * *", "America/New_York"},
		{"daily", "30 2 * * *", "America/New_York"},
		{"hours", "0 9-17 * * 1-5", "Europe/Berlin"},
		{"leap", "0 0 29 2 *", "America/New_York"},
		{"sparse", "ncrontab 0 0 29 2 1", "America/New_York"},
		{"sparse-elapsed", "ncrontab * * 29 2 1", "America/New_York"},
		{"every", "@every 5m", ""},
		{"last-day", "30 2 L * *", "America/New_York"},
		{"weekday", "30 2 15W,LW * *", "America/New_York"},
		{"fifth", "30 2 * * fri#5", "America/New_York"},
		{"leap-or-monday", "0 0 29 2 mon", "America/New_York"},
		{"fifth-in-february", "0 0 * 2 fri#5", "America/New_York"},
		{"fifth-in-february-elapsed", "* * * 2 fri#5", "America/New_York"},
		{"weekday-in-leap-years", "0 0 29W 2 *", "America/New_York"},
	} {
		at := time.Date(2026, 11, 21, 10, 2, 17, 0, time.UTC)
		b.Run(bench.name, func(b *testing.B) {
			s := parse(b, bench.text, bench.zone)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}

const day = 24 * time.Hour

// TestNoAllocation keeps what the benchmarks show.
func TestNoAllocation(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 2, 17, 0, time.UTC)
	for _, text := range []string{"* * * * *", "30 2 * * *", "ncrontab 0 0 29 2 1", "@every 5m", "0 0 L-3,15W,LW * fri#5,monL",
		"30 2 * * * ; */5 * L * * ; 0 0 * 2 fri#5 ; @every 7m"} {
		s := parse(t, text, "America/New_York")
		if n := testing.AllocsPerRun(100, func() { s.Next(at); s.Last(at); s.Count(at, at.Add(day), 10) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", text, n)
		}
	}
}
