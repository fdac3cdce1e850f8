// Package ontime wakes goroutines up on time: one for a single instant, by [SleepUntil], or
// many for their own, by an [Agenda] that has one timer.
//
// A timer comes late by a share of how long it was set for. Linux lets an idle process
// oversleep by a thousandth, up to 100 ms: a tick once a minute would start 60 ms late. So
// a long wait is slept in naps: two of them end shortly before the instant, and the last one
// is too short to be late. Timers also stand still while a machine is suspended, so no nap is
// long.
package ontime

import (
	"context"
	"time"
)

const (
	// Longest is the longest nap: after it, clocks are looked at again.
	Longest = 30 * time.Second

	early    = 500 * time.Millisecond // the first wake-up before the instant: a nap of Longest is at most 30 ms late
	earliest = 20 * time.Millisecond  // the second: one of 480 ms is at most half a millisecond late
)

// Nap returns how long to sleep at once if that much time is left.
func Nap(left time.Duration) time.Duration {
	switch {
	case left > early:
		return min(left-early, Longest)
	case left > earliest:
		return left - earliest
	}
	return max(left, 0)
}

// SleepUntil returns true when left says that no time is left. Left is asked at once and after
// each nap, so it may go by a clock that is set, or corrected, meanwhile. It returns false if
// ctx ends first.
func SleepUntil(ctx context.Context, left func() time.Duration) bool {
	var t *time.Timer
	for ctx.Err() == nil {
		nap := Nap(left())
		if nap == 0 {
			return true
		}
		if t == nil {
			t = time.NewTimer(nap)
			defer t.Stop()
		} else {
			t.Reset(nap)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return false
}
