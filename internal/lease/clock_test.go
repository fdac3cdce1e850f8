package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
)

func TestTheServiceClockIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Clock{Wall: time.Now, Elapsed: elapsed.Now}
		if _, _, ok := c.Now(); ok {
			t.Error("it knows a time that nobody told")
		}
		offset := 3*time.Hour + 700*time.Millisecond // of the service's clock
		truth := func() time.Time { return time.Now().Add(offset) }
		var width time.Duration
		for range 200 {
			sent := elapsed.Now()
			time.Sleep(13 * time.Millisecond)
			date := truth().Truncate(time.Second)
			time.Sleep(17 * time.Millisecond)
			c.Observe(sent, date)
			lo, hi, _ := c.Now()
			if truth().Before(lo) || !truth().Before(hi) {
				t.Fatalf("%s is not within %s and %s", truth(), lo, hi)
			}
			width = hi.Sub(lo)
			time.Sleep(377 * time.Millisecond)
		}
		if width > 200*time.Millisecond {
			t.Errorf("after 200 answers it is still unsure by %s", width)
		}
		offset = -time.Hour // the service's clock was set: the past says nothing any more
		c.Observe(elapsed.Now(), truth().Truncate(time.Second))
		if lo, hi, _ := c.Now(); truth().Before(lo) || truth().After(hi) {
			t.Errorf("%s is not within %s and %s", truth(), lo, hi)
		}
		c.Observe(elapsed.Now(), time.Time{})
		time.Sleep(time.Hour)
		if lo, hi, _ := c.Now(); hi.Sub(lo) < time.Minute || truth().Before(lo) || truth().After(hi) {
			t.Errorf("an hour later it is sure to %s", hi.Sub(lo))
		}
	})
}
