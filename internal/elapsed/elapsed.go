// Package elapsed measures how long something takes on a machine that may be
// suspended meanwhile. The runtime's monotonic clock stands still then on some
// systems (https://go.dev/issue/24595), while a lease at a service runs out.
//
// On Linux the time in suspension is added, as CLOCK_BOOTTIME counts it. On
// other systems Now is the runtime's monotonic clock alone. A pause that the
// hypervisor hides from the guest is counted nowhere.
package elapsed

import (
	"sync/atomic"
	"time"
)

var start = time.Now()

// asleep is how long the machine was suspended so far, since this process began.
var asleep atomic.Int64

// Now is the time since some instant before, the same for the whole process. On
// Linux it includes the time for which the machine was suspended. It never goes
// back, and a step of the wall clock does not touch it.
func Now() time.Duration {
	for {
		seen := asleep.Load()
		now := int64(suspended())
		if now <= seen {
			return time.Since(start) + time.Duration(seen)
		}
		if asleep.CompareAndSwap(seen, now) {
			return time.Since(start) + time.Duration(now)
		}
	}
}

// Wall returns a clock that has the time of the wall clock alone: of now, or of the machine if now is nil. Go compares two
// times that both have a monotonic reading by that reading, which may stand still, in suspension, while the wall clock goes on.
func Wall(now func() time.Time) func() time.Time {
	return func() time.Time {
		if now == nil {
			return time.Now().Round(0)
		}
		return now().Round(0)
	}
}
