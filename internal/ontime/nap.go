// Package ontime has an [Agenda], which starts goroutines on time, each at its own instant, with
// one timer.
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

// Sleep waits. It returns false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
