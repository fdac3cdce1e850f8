package elapsed

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNowNeverGoesBack(t *testing.T) {
	before := Now()
	for range 100_000 {
		now := Now()
		if now < before {
			t.Fatalf("went back from %s to %s", before, now)
		}
		before = now
	}
}

func TestNowFollowsVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		time.Sleep(time.Hour)
		if got := Now() - before; got < time.Hour || got > time.Hour+time.Second {
			t.Errorf("an hour took %s", got)
		}
	})
}

func TestNowCountsSuspension(t *testing.T) {
	before := Now()
	old := asleep.Swap(int64(suspended() + time.Hour))
	defer asleep.Store(old)
	const jitter = time.Millisecond // two clocks are read, one after the other
	if got := Now() - before; got < time.Hour-jitter || got > time.Hour+time.Minute {
		t.Errorf("a suspension of an hour took %s", got)
	}
}

func TestBoot(t *testing.T) {
	was, id := Boot()
	now, same := Boot()
	if now < was || id != same {
		t.Errorf("got %s of %q, then %s of %q", was, id, now, same)
	}
}

// The wall clock is read without the monotonic clock, which may stand still while the
// process is frozen: times with both are compared by that one alone.
func TestWallClockIsReadAlone(t *testing.T) {
	for name, now := range map[string]func() time.Time{"not set": nil, "set": time.Now} {
		if got := Wall(now)(); got != got.Round(0) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
