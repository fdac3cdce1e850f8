package duration_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/duration"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "1d12h": 36 * time.Hour, "2d1h30m5s": 2*day + time.Hour + 30*time.Minute + 5*time.Second, "0d": 0, "1d0.5s": day + time.Second/2,
		"36h": 36 * time.Hour, "0": 0, "-1s": -time.Second, "1d24h": 2 * day, "1d36h": 60 * time.Hour, "65535d": 65535 * day,
	} {
		if got, err := duration.Parse(text); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1d", "+1d", "1.5d", "1d-1h", "1d+1h", "1dd", "1d1d", "12h1d", "1d12", "1 d", "1d 1h", "30", "1D", "١d", "65536d", "99999999999999999999d"} {
		if got, err := duration.Parse(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}
