package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// Each text of a schedule may have a zone of its own: the ticks are those of both, and the clocks change apart.
func TestZonesOfTexts(t *testing.T) {
	const text = "CRON_TZ=America/New_York 0 9 * * 1-5 ; TZ=Europe/London 0 14 * * 1-5 ; @every 84h"
	s, err := schedule.Parse(text, "", "x")
	if err != nil {
		t.Fatal(err)
	}
	var singles []*schedule.Schedule
	for _, one := range []string{"CRON_TZ=America/New_York 0 9 * * 1-5", "CRON_TZ=Europe/London 0 14 * * 1-5", "@every 84h"} {
		p, err := schedule.Parse(one, "", "x")
		if err != nil {
			t.Fatal(err)
		}
		singles = append(singles, p)
	}
	from, n := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	for at := from; at.Before(from.AddDate(1, 0, 0)); n++ {
		next, last := s.Next(at), s.Last(at)
		want, before := singles[0].Next(at), singles[0].Last(at)
		for _, p := range singles[1:] {
			if tick := p.Next(at); tick.Before(want) {
				want = tick
			}
			if tick := p.Last(at); tick.After(before) {
				before = tick
			}
		}
		if !next.Equal(want) || !last.Equal(before) {
			t.Fatalf("at %s: got %s and %s, want %s and %s", at, next, last, want, before)
		}
		at = next
	}
	if n < 365 { // on most days two, while the zones are five hours apart one
		t.Errorf("got %d ticks in a year", n)
	}
	again, err := schedule.Parse(s.String(), "", "y")
	if want := "CRON_TZ=America/New_York 0 9 * * 1-5 ; CRON_TZ=Europe/London 0 14 * * 1-5 ; @every 84h0m0s"; err != nil || s.String() != want || again.String() != want {
		t.Errorf("got %s, again %v, %v", s, again, err)
	}
	if want := "at 09:00 on Monday to Friday, America/New_York; at 14:00 on Monday to Friday, Europe/London; and every 84 hours, counted from 1970-01-01 00:00 UTC"; s.Words() != want {
		t.Errorf("got %s, want %s", s.Words(), want)
	}
	if got := s.Zones(); !slices.Equal(got, []string{"America/New_York", "Europe/London"}) {
		t.Errorf("got %q", got)
	}
}
