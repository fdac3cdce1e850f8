package schedule_test

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// Each benchmark has robfig/cron's Next beside it, on the same text where it can express it.
func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct{ name, text, zone, theirs string }{
		{"dense", "* * * * *", "America/New_York", "* * * * *"},
		{"daily", "30 2 * * *", "America/New_York", "30 2 * * *"},
		{"hours", "0 9-17 * * 1-5", "Europe/Berlin", "0 9-17 * * 1-5"},
		{"leap", "0 0 29 2 *", "America/New_York", "0 0 29 2 *"},
		{"sparse", "ncrontab 0 0 29 2 1", "America/New_York", ""},
		{"sparse-elapsed", "ncrontab * * 29 2 1", "America/New_York", ""},
		{"every", "@every 5m", "", ""},
	} {
		at := time.Date(2026, 11, 21, 10, 2, 17, 0, time.UTC)
		b.Run(bench.name, func(b *testing.B) {
			s := parse(b, bench.text, bench.zone)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(at)
			}
		})
		if bench.theirs == "" {
			continue
		}
		b.Run(bench.name+"-robfig", func(b *testing.B) {
			s, err := cron.ParseStandard("CRON_TZ=" + bench.zone + " " + bench.theirs)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}

func BenchmarkLast(b *testing.B) {
	at := time.Date(2026, 11, 21, 10, 2, 17, 0, time.UTC)
	for _, text := range []string{"* * * * *", "30 2 * * *", "ncrontab 0 0 29 2 1", "ncrontab * * 29 2 1"} {
		b.Run(text, func(b *testing.B) {
			s := parse(b, text, "America/New_York")
			b.ReportAllocs()
			for b.Loop() {
				s.Last(at)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, zone := range []string{"UTC", "America/New_York"} {
		b.Run(zone, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parse(b, "30 2 * * *", zone)
			}
		})
	}
}

// TestNoAllocation keeps what the benchmarks show.
func TestNoAllocation(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 2, 17, 0, time.UTC)
	for _, text := range []string{"* * * * *", "30 2 * * *", "ncrontab 0 0 29 2 1", "@every 5m"} {
		s := parse(t, text, "America/New_York")
		if n := testing.AllocsPerRun(100, func() { s.Next(at); s.Last(at) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", text, n)
		}
	}
}
