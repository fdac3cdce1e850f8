package replica

import (
	"testing"
	"time"
)

func at(seconds int) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds) * time.Second)
}

func TestTicks(t *testing.T) {
	j := Job{Every: 20 * time.Second, At: 3 * time.Second}
	for now, want := range map[time.Time]time.Time{
		at(3): at(3), at(3).Add(-time.Millisecond): at(3), at(3).Add(-time.Second): at(-17), at(22): at(3), at(23).Add(time.Millisecond): at(23),
	} {
		if got := j.Tick(now); !got.Equal(want) {
			t.Errorf("the tick at %s: got %s, want %s", now, got, want)
		}
	}
	if got := j.Next(at(3)); !got.Equal(at(23)) {
		t.Errorf("got %s after a tick", got)
	}
	if got := j.Cron(); got != "3-59/20 * * * * *" {
		t.Errorf("got %s", got)
	}
}
