package lease

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A chore is done after each pause that it names, and has no goroutine in between.
func TestChoreIsDoneAfterEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, before := time.Now(), runtime.NumGoroutine()
		pauses := []time.Duration{time.Second, 0, time.Minute}
		var at []time.Duration
		c := newChore(time.Hour, func() (time.Duration, bool) {
			at = append(at, time.Since(begin))
			if len(at) > len(pauses) {
				return 0, false
			}
			return pauses[len(at)-1], true
		})
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("it has %d goroutines", n)
		}
		time.Sleep(24 * time.Hour)
		c.stop()
		if want := []time.Duration{time.Hour, time.Hour + time.Second, time.Hour + time.Second, time.Hour + time.Minute + time.Second}; !slices.Equal(at, want) {
			t.Errorf("done after %s, want %s", at, want)
		}
	})
}

// Stop waits for what is being done, and nothing is done after it: neither later nor in a timer
// that has just fired.
func TestChoreEndsWithStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int64
		work := func() (time.Duration, bool) {
			time.Sleep(time.Minute)
			done.Add(1)
			return 0, true
		}
		busy, waits, fired := newChore(time.Second, work), newChore(time.Hour, work), newChore(0, work)
		fired.stop()
		early := done.Load()
		time.Sleep(2 * time.Second)
		busy.stop()
		waits.stop()
		late := done.Load()
		time.Sleep(2 * time.Hour)
		if late != early+1 || done.Load() != late {
			t.Errorf("done %d, %d and %d times: stop has not waited, or it was done after it", early, late, done.Load())
		}
	})
}
