package lease

import (
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A chore is done after each pause that it names, and has no goroutine in between.
func TestChoreIsDoneAfterEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, stacks := time.Now(), make([]byte, 1<<20)
		pauses := []time.Duration{time.Second, 0, time.Minute}
		var at []time.Duration
		goroutines := func(when string) {
			for range 1000 { // one may be about to end
				if !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*chore)") {
					return
				}
				runtime.Gosched()
			}
			t.Errorf("it has a goroutine %s", when)
		}
		c := newChore(time.Hour, func() (time.Duration, bool) {
			at = append(at, time.Since(begin))
			if len(at) > len(pauses) {
				return 0, false
			}
			return pauses[len(at)-1], true
		})
		goroutines("before the first call")
		time.Sleep(time.Hour + 30*time.Second)
		synctest.Wait()
		goroutines("in a pause")
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
	for name, test := range map[string]struct {
		pause, stop time.Duration
		most        int64
	}{"busy": {time.Second, 2 * time.Second, 1}, "waits": {time.Hour, time.Second, 0}, "just fired": {0, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begun, done atomic.Int64
				c := newChore(test.pause, func() (time.Duration, bool) {
					begun.Add(1)
					time.Sleep(time.Minute)
					done.Add(1)
					return 0, true
				})
				if test.stop > 0 {
					time.Sleep(test.stop)
				}
				c.stop()
				if n := done.Load(); n != begun.Load() || n > test.most {
					t.Errorf("begun %d times, done %d times when stop returns, want at most %d", begun.Load(), n, test.most)
				}
				n := begun.Load()
				time.Sleep(2 * time.Hour)
				if begun.Load() != n {
					t.Errorf("begun %d times after stop", begun.Load()-n)
				}
			})
		})
	}
}
