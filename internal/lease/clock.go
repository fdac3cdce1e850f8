package lease

import (
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
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

// Drift is how much the rates of two clocks may differ: one in so many.
// It is the only thing that is assumed of clocks.
const Drift = 100

// A Clock bounds the service's clock by the dates of its answers. Each
// answer leaves room of a second and a round trip; where several overlap, it
// narrows. No replica's wall clock takes part.
//
// A wall clock that an answer proves wrong is put right by as much as was
// proved, so that it stays right while the bounds widen again.
type Clock struct {
	Wall    func() time.Time     // of this replica
	Elapsed func() time.Duration // since some fixed instant; it counts suspensions and no steps

	mu     sync.Mutex
	known  bool
	off    time.Duration // of the wall clock, at least
	at     time.Duration // elapsed: when lo and hi were true
	lo, hi time.Time
}

// Observe takes in the date of an answer to a request that was sent at sent, in
// elapsed time.
func (c *Clock) Observe(sent time.Duration, date time.Time) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Elapsed()
	lo, hi := date, date.Add(dateStep(date)+now-sent)
	if oldLo, oldHi, ok := c.bounds(now); ok && oldLo.Before(hi) && lo.Before(oldHi) {
		lo, hi = instant.Later(lo, oldLo), instant.Earlier(hi, oldHi)
	}
	c.known, c.at, c.lo, c.hi = true, now, lo, hi
	wall := c.Wall()
	c.off = instant.Earlier(instant.Later(wall, lo), hi).Sub(wall)
}

// Best returns the wall clock's time as far as the service's clock cannot prove
// it wrong.
func (c *Clock) Best() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Wall().Add(c.off)
	if lo, hi, ok := c.bounds(c.Elapsed()); ok {
		now = instant.Earlier(instant.Later(now, lo), hi)
	}
	return now
}

// bounds returns the earliest and the latest that the service's clock can
// show at now. The caller holds mu.
func (c *Clock) bounds(now time.Duration) (lo, hi time.Time, ok bool) {
	gone := now - c.at
	slack := gone / Drift
	return c.lo.Add(gone - slack), c.hi.Add(gone + slack), c.known
}

// Skew is how far the wall clock is ahead of the service's clock, behind if
// negative, as far as that is proved.
func (c *Clock) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.Wall()
	lo, hi, ok := c.bounds(c.Elapsed())
	switch {
	case ok && wall.After(hi):
		return wall.Sub(hi)
	case ok && wall.Before(lo):
		return wall.Sub(lo)
	}
	return 0
}

// Now returns the bounds at this instant; ok is false while nothing is known.
func (c *Clock) Now() (lo, hi time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounds(c.Elapsed())
}
