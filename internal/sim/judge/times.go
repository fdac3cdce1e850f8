package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

const (
	slack   = 15 * time.Millisecond // timers go by true time, and clocks do not
	noticed = time.Second + slack   // until a machine sees that it was suspended
	rests   = 2 * time.Minute       // until a healed cluster has left behind what befell it
)

// first is the first of two times, of which a may be zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// after is the index of the first of the events that comes after a time.
func after[T any](all []T, t time.Time, of func(T) time.Time) int {
	n, _ := slices.BinarySearchFunc(all, t, func(x T, t time.Time) int { return cmp.Or(of(x).Compare(t), -1) })
	return n
}

func timeOf(e *trace.Event) time.Time { return e.Time }

func clock(t time.Time) string { return trace.TimeOfDay(t) }
