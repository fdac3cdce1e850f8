package elapsed

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// suspended is the time that the machine has spent in suspension: what
// CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not
// (https://man7.org/linux/man-pages/man2/clock_gettime.2.html). The two cannot
// be read at once: a reading between which this thread was held up tells
// nothing, and the last good one serves.
func suspended() time.Duration {
	const close = time.Millisecond
	for range 3 {
		before, ok1 := read(unix.CLOCK_MONOTONIC)
		boot, ok2 := read(unix.CLOCK_BOOTTIME)
		after, ok3 := read(unix.CLOCK_MONOTONIC)
		if ok1 && ok2 && ok3 && after-before < close {
			return max(0, boot-after)
		}
	}
	return 0
}

func read(clock int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err == nil
}

var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// Boot returns the time since the machine started, suspension included, and an
// id of that start: two processes of one machine can compare what they read. An
// empty id: the system does not tell.
func Boot() (time.Duration, string) {
	now, ok := read(unix.CLOCK_BOOTTIME)
	if !ok {
		return 0, ""
	}
	return now, bootID()
}
