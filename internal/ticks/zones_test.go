package ticks_test

import (
	"testing"

	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

// Replicas with other rules for the second zone of a schedule would name other ticks.
func TestSumOfSeveralZones(t *testing.T) {
	sum := func(text string) string {
		t.Helper()
		s, err := schedule.Parse(text, "", "x")
		if err != nil {
			t.Fatal(err)
		}
		all, err := ticks.New(s, ticks.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return all.ZoneSum()
	}
	one := sum("CRON_TZ=America/New_York 0 9 * * *")
	if same := sum("CRON_TZ=America/New_York 0 9 * * * ; CRON_TZ=America/New_York 0 10 * * *"); same != one {
		t.Errorf("one zone twice: got %s, want %s", same, one)
	}
	both, other := sum("CRON_TZ=America/New_York 0 9 * * * ; TZ=Europe/London 0 14 * * *"), sum("CRON_TZ=America/New_York 0 9 * * * ; TZ=Europe/Kyiv 0 14 * * *")
	if both == one || both == other || sum("0 9 * * * ; TZ=Europe/London 0 14 * * *") == "" {
		t.Errorf("got %s, %s and %s", one, both, other)
	}
}
