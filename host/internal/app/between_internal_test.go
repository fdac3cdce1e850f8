package app

import (
	"testing"
	"time"
)

// A replica waits for a tick until it is due, however short that is, and longer each time for one that cannot be begun.
func TestWaitBetweenPasses(t *testing.T) {
	pause := firstPause
	for i, test := range []struct{ until, want time.Duration }{
		{900 * time.Millisecond, 900 * time.Millisecond},
		{800 * time.Millisecond, 800 * time.Millisecond},
		{time.Millisecond, leastPause},
		{0, time.Second},
		{-time.Second, 2 * time.Second},
		{-3 * time.Second, 4 * time.Second},
		{-7 * time.Second, 8 * time.Second},
		{-time.Minute, lastPause},
		{-time.Minute, lastPause},
		{time.Second, time.Second},
		{-time.Second, time.Second},
	} {
		var wait time.Duration
		if wait, pause = between(test.until, pause); wait != test.want {
			t.Errorf("%d: a tick due in %s: got a wait of %s, want %s", i, test.until, wait, test.want)
		}
	}
}
