package schedule_test

import (
	"strings"
	"testing"
	"time"
)

// TestMovingTexts wants the texts that docs/moving.md gives for those of other schedulers to be due when theirs are.
func TestMovingTexts(t *testing.T) {
	page := read(t, "../../docs/moving.md")
	for _, test := range []struct{ text, ticks string }{ // the first ticks of 2027, which begins on a Friday
		{"30 2 * * 1-5", "01-01 02:30:00, 01-04 02:30:00"},
		{"30 2 * * mon-fri", "01-01 02:30:00, 01-04 02:30:00"},
		{"30 2 * * *", "01-01 02:30:00, 01-02 02:30:00"},
		{"0 30 2 * * *", "01-01 02:30:00, 01-02 02:30:00"},
		{"ncrontab 0 30 2 * * *", "01-01 02:30:00, 01-02 02:30:00"},
		{"ncrontab 0 0 */2 * 1", "01-11 00:00:00, 01-25 00:00:00"}, // each Monday that is odd
		{"ncrontab 0 0 1-7 * mon", "01-04 00:00:00, 02-01 00:00:00"},
		{"@every 1h", "01-01 00:00:00, 01-01 01:00:00"},
		{"@every 5m", "01-01 00:00:00, 01-01 00:05:00"},
		{"@every 30s", "01-01 00:00:00, 01-01 00:00:30"},
		{"0 0 L * *", "01-31 00:00:00, 02-28 00:00:00"},
	} {
		if !strings.Contains(page, test.text+"`") && !strings.Contains(page, test.text+`"`) {
			t.Errorf("the page does not have %s", test.text)
		}
		s, at := parse(t, test.text, ""), utc(t, "2026-12-31 23:59:59")
		var got []string
		for range 2 {
			at = s.Next(at)
			got = append(got, at.Format("01-02 15:04:05"))
		}
		if strings.Join(got, ", ") != test.ticks {
			t.Errorf("%s: got %q, want %s", test.text, got, test.ticks)
		}
	}
	// Jobs in turn have the ticks of one job, each once.
	turns, all := []string{"0-58/2 * * * *", "1-59/2 * * * *"}, parse(t, "* * * * *", "")
	for at := utc(t, "2026-12-31 23:59:00"); at.Before(utc(t, "2027-01-02 00:00:00")); at = at.Add(time.Minute) {
		n := 0
		for _, text := range turns {
			if parse(t, text, "").Next(at).Equal(all.Next(at)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of %q are due after %v, want one", n, turns, at)
		}
	}
	for _, text := range turns {
		if !strings.Contains(page, "`"+text+"`") {
			t.Errorf("the page does not have %s", text)
		}
	}
}
