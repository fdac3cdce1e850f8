package elapsed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// suspended is how long the machine was suspended since the first call. It makes three system
// calls, unless the last look was a moment ago and the clocks have not moved apart since.
func suspended() time.Duration {
	apart, at := clocks()
	if l := last.Load(); l.serves(apart, at) {
		return l.suspended
	}
	now, ok := gap()
	if !ok {
		return 0
	}
	found := sinceStart.since(now)
	last.Store(&look{apart, at, found})
	return found
}

// A look is what the system calls have returned, and how far the wall clock and the monotonic
// clock were apart before them.
type look struct{ apart, at, suspended time.Duration }

var last atomic.Pointer[look] // nil: there was none

// serves reports whether a look still holds.
func (l *look) serves(apart, at time.Duration) bool {
	const moved = 100 * time.Microsecond // no machine goes to sleep and wakes up in less
	return l != nil && at >= l.at && at-l.at < lookAgain && (apart-l.apart).Abs() < moved
}

// lookAgain is how long a look may serve. The kernel adds the time of a suspension to the wall
// clock together with CLOCK_BOOTTIME, before any process goes on: so the wall clock, which costs
// no system call, shows that there was one. Only if it was set back meanwhile by just as much
// does it not show, and then for no longer than this.
const lookAgain = 20 * time.Millisecond

// clocks returns how far the wall clock is ahead of the monotonic clock, and the latter.
func clocks() (apart, monotonic time.Duration) {
	now := time.Now()
	monotonic = now.Sub(start)
	return time.Duration(now.UnixNano()) - monotonic, monotonic
}

// gap is what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not: the time that
// the machine has spent in suspension
// (https://man7.org/linux/man-pages/man2/clock_gettime.2.html), and in a time
// namespace the difference of two offsets too, which may be negative. The two
// cannot be read at once: a reading during which this thread was held up proves nothing, and the
// last good one serves.
func gap() (time.Duration, bool) {
	const close = time.Millisecond
	for range 3 {
		before, ok1 := read(monotonic)
		boot, ok2 := read(boottime)
		after, ok3 := read(monotonic)
		if ok1 && ok2 && ok3 && after-before < close {
			return boot - after, true
		}
	}
	return 0, false
}

var sinceStart growth

// A growth measures how much a duration has grown since its first value.
type growth struct{ first atomic.Pointer[time.Duration] }

func (g *growth) since(now time.Duration) time.Duration {
	if g.first.Load() == nil {
		first := now // of its own, so that only the first call allocates
		g.first.CompareAndSwap(nil, &first)
	}
	return now - *g.first.Load()
}

// The clocks of clock_gettime.
const (
	monotonic = 1
	boottime  = 7
)

// read makes the call itself: golang.org/x/sys/unix, which has it, takes as long to compile as the core's largest room.
func read(clock uintptr) (time.Duration, bool) {
	var t syscall.Timespec
	_, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), err == 0
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
// id of that start: two processes of one machine can compare what they read. An empty id: the
// system does not report it.
func Boot() (time.Duration, string) {
	now, ok := read(boottime)
	id, off := machine()
	if !ok || id == "" {
		return 0, ""
	}
	return now - off, id
}
