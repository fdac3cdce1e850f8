package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
)

func bounds(c *Clock) (lo, hi time.Time) {
	now := c.Now()
	return now.Earliest, now.Latest
}

func TestTheServiceClockIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Clock{Wall: time.Now, Elapsed: elapsed.Now}
		if !c.Now().Latest.IsZero() {
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
			lo, hi := bounds(&c)
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
		if lo, hi := bounds(&c); truth().Before(lo) || truth().After(hi) {
			t.Errorf("%s is not within %s and %s", truth(), lo, hi)
		}
		c.Observe(elapsed.Now(), time.Time{})
		time.Sleep(time.Hour)
		if lo, hi := bounds(&c); hi.Sub(lo) < time.Minute || truth().Before(lo) || truth().After(hi) {
			t.Errorf("an hour later it is sure to %s", hi.Sub(lo))
		}
	})
}

// A wrong wall clock is told once, with its error, when that is proved to be more than five
// seconds, and once that it is right again, within one second.
func TestAWrongWallClockIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrong time.Duration
		var told []time.Duration
		c := Clock{Wall: func() time.Time { return time.Now().Add(wrong) }, Elapsed: elapsed.Now, Skewed: func(by time.Duration) { told = append(told, by) }}
		for _, step := range []struct {
			wrong time.Duration
			want  []time.Duration
		}{
			{0, nil},
			{4 * time.Second, nil},
			{10 * time.Second, []time.Duration{9 * time.Second}}, // the date leaves a second open
			{30 * time.Second, nil},
			{3 * time.Second, nil},
			{10 * time.Second, nil},
			{time.Second, []time.Duration{0}},
			{3 * time.Second, nil},
			{-time.Hour, []time.Duration{-time.Hour}},
			{0, []time.Duration{0}},
		} {
			wrong, told = step.wrong, nil
			time.Sleep(time.Hour)
			for range 3 {
				c.Observe(elapsed.Now(), time.Now().Truncate(time.Second))
			}
			if len(told) != len(step.want) || len(told) > 0 && told[0] != step.want[0] {
				t.Errorf("wrong by %s: told %s, want %s", step.wrong, told, step.want)
			}
		}
	})
}
