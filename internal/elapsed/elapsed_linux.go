package elapsed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// suspended is how long the machine was suspended since the first call.
func suspended() time.Duration {
	now, ok := gap()
	if !ok {
		return 0
	}
	return sinceStart.since(now)
}

// gap is what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not: the time that
// the machine has spent in suspension
// (https://man7.org/linux/man-pages/man2/clock_gettime.2.html), and in a time
// namespace the difference of two offsets too, which may be negative. The two
// cannot be read at once: a reading between which this thread was held up tells
// nothing, and the last good one serves.
func gap() (time.Duration, bool) {
	const close = time.Millisecond
	for range 3 {
		before, ok1 := read(unix.CLOCK_MONOTONIC)
		boot, ok2 := read(unix.CLOCK_BOOTTIME)
		after, ok3 := read(unix.CLOCK_MONOTONIC)
		if ok1 && ok2 && ok3 && after-before < close {
			return boot - after, true
		}
	}
	return 0, false
}

var sinceStart growth

// A growth tells how much a duration has grown since it was first told.
type growth struct{ first atomic.Pointer[time.Duration] }

func (g *growth) since(now time.Duration) time.Duration {
	if g.first.Load() == nil {
		first := now // of its own, so that only the first call allocates
		g.first.CompareAndSwap(nil, &first)
	}
	return now - *g.first.Load()
}

func read(clock int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err == nil
}

// machine is the id of the machine's start, and how far CLOCK_BOOTTIME is off
// in this process. It is in a time namespace of its own, as a container may
// have (https://man7.org/linux/man-pages/man7/time_namespaces.7.html).
var machine = sync.OnceValues(func() (id string, off time.Duration) {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	offsets, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without such namespaces has no such file
		return "", 0
	}
	off, ok := shift(string(offsets))
	if !ok {
		return "", 0
	}
	return strings.TrimSpace(string(b)), off
})

// shift reads the line "boottime SECONDS NANOSECONDS". No text: no shift.
func shift(offsets string) (time.Duration, bool) {
	for line := range strings.Lines(offsets) {
		var seconds, nanoseconds int64
		if n, _ := fmt.Sscanf(line, "boottime %d %d", &seconds, &nanoseconds); n == 2 {
			return time.Duration(seconds)*time.Second + time.Duration(nanoseconds), true
		}
	}
	return 0, offsets == ""
}

// Boot returns the time since the machine started, suspension included, and an
// id of that start: two processes of one machine can compare what they read. An
// empty id: the system does not tell.
func Boot() (time.Duration, string) {
	now, ok := read(unix.CLOCK_BOOTTIME)
	id, off := machine()
	if !ok || id == "" {
		return 0, ""
	}
	return now - off, id
}
