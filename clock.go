package soloist

import (
	"sync"
	"time"
)

// dateStep is how much a Date header leaves out, which has whole seconds
// (https://www.rfc-editor.org/rfc/rfc9110#name-date-time-formats). A date with a
// fraction leaves out nothing.
func dateStep(date time.Time) time.Duration {
	if date.Nanosecond() == 0 {
		return time.Second
	}
	return 0
}

// driftShare is how much the rates of two clocks may differ: one in so many.
// It is the only thing that is assumed of clocks.
const driftShare = 100

// A serviceClock bounds the service's clock by the dates of its answers. Each
// answer leaves room of a second and a round trip; where several overlap, it
// narrows. No replica's wall clock takes part.
//
// A wall clock that an answer proves wrong is put right by as much as was
// proved, so that it stays right while the bounds widen again.
type serviceClock struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu     sync.Mutex
	known  bool
	off    time.Duration // of the wall clock, at least
	at     time.Duration // elapsed: when lo and hi were true
	lo, hi time.Time
}

// observe takes in the date of an answer to a request that was sent at sent, in
// elapsed time.
func (c *serviceClock) observe(sent time.Duration, date time.Time) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	lo, hi := date, date.Add(dateStep(date)+now-sent)
	if oldLo, oldHi, ok := c.bounds(now); ok && oldLo.Before(hi) && lo.Before(oldHi) {
		lo, hi = later(lo, oldLo), earlier(hi, oldHi)
	}
	c.known, c.at, c.lo, c.hi = true, now, lo, hi
	wall := c.wall()
	c.off = earlier(later(wall, lo), hi).Sub(wall)
}

// best returns the wall clock's time as far as the service's clock cannot prove
// it wrong.
func (c *serviceClock) best() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.wall().Add(c.off)
	if lo, hi, ok := c.bounds(c.elapsed()); ok {
		now = earlier(later(now, lo), hi)
	}
	return now
}

// bounds returns the earliest and the latest that the service's clock can
// show at now. The caller holds mu.
func (c *serviceClock) bounds(now time.Duration) (lo, hi time.Time, ok bool) {
	gone := now - c.at
	slack := gone / driftShare
	return c.lo.Add(gone - slack), c.hi.Add(gone + slack), c.known
}

// skew is how far the wall clock is ahead of the service's clock, behind if
// negative, as far as that is proved.
func (c *serviceClock) skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.wall()
	lo, hi, ok := c.bounds(c.elapsed())
	switch {
	case ok && wall.After(hi):
		return wall.Sub(hi)
	case ok && wall.Before(lo):
		return wall.Sub(lo)
	}
	return 0
}

// now returns the bounds at this instant; ok is false while nothing is known.
func (c *serviceClock) now() (lo, hi time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounds(c.elapsed())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
