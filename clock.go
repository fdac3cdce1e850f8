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
	wall func() time.Time

	mu     sync.Mutex
	off    time.Duration // of the wall clock, at least
	at     time.Time     // monotonic: when lo and hi were true; zero: nothing known
	lo, hi time.Time
}

// observe takes in the date of an answer to a request that was sent at sent.
func (c *serviceClock) observe(sent, date time.Time) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	lo, hi := date, date.Add(dateStep(date)+now.Sub(sent))
	if oldLo, oldHi, ok := c.bounds(now); ok && oldLo.Before(hi) && lo.Before(oldHi) {
		lo, hi = later(lo, oldLo), earlier(hi, oldHi)
	}
	c.at, c.lo, c.hi = now, lo, hi
	wall := c.wall()
	c.off = earlier(later(wall, lo), hi).Sub(wall)
}

// best returns the wall clock's time as far as the service's clock cannot prove
// it wrong.
func (c *serviceClock) best() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.wall().Add(c.off)
	if lo, hi, ok := c.bounds(time.Now()); ok {
		now = earlier(later(now, lo), hi)
	}
	return now
}

// bounds returns the earliest and the latest that the service's clock can
// show at now. The caller holds mu.
func (c *serviceClock) bounds(now time.Time) (lo, hi time.Time, ok bool) {
	gone := now.Sub(c.at)
	slack := gone / driftShare
	return c.lo.Add(gone - slack), c.hi.Add(gone + slack), !c.at.IsZero()
}

// now returns the bounds at this instant; ok is false while nothing is known.
func (c *serviceClock) now() (lo, hi time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounds(time.Now())
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
