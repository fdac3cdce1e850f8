package soloist

import (
	"testing"
	"time"
)

// The wall clock is read without the monotonic clock, which may stand still while the
// process is frozen: times with both are compared by that one alone.
func TestWallClockIsReadAlone(t *testing.T) {
	for name, now := range map[string]func() time.Time{"not set": nil, "set": time.Now} {
		if got := (&Scheduler{Now: now}).wall(); got != got.Round(0) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
