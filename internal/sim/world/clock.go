package world

import (
	"sync"
	"time"
)

// A Clock is what one machine believes of time. True time, the service's time,
// is time.Now: inside testing/synctest it is virtual.
//
// Timers of the machine nevertheless go by true time, since one bubble has one
// clock. What a replica reads is wrong by as much as it would be, so all that
// it computes is; what it waits for is right within a hundredth.
type Clock struct {
	mu     sync.Mutex
	start  time.Time
	skew   time.Duration // of the wall clock
	Drift  int64         // of both clocks, in millionths
	frozen time.Time     // since then the machine is suspended
	thaw   time.Time     // until then
}

// NewClock starts a clock that is ahead by skew and gains drift millionths.
func NewClock(skew time.Duration, drift int64) *Clock {
	return &Clock{start: time.Now(), skew: skew, Drift: drift}
}

// Now is the wall clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Add(c.elapsed() + c.skew)
}

// Elapsed counts the time since some instant, suspensions included. Nothing
// runs on a suspended machine; a read meanwhile returns the time at which the
// suspension began, and a later read includes all of it.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed() + time.Hour
}

func (c *Clock) elapsed() time.Duration {
	now := time.Now()
	if now.Before(c.thaw) {
		now = c.frozen
	}
	gone := now.Sub(c.start)
	return gone + time.Duration(int64(gone/1_000_000)*c.Drift)
}

// Step moves the wall clock.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew += d
}

// Freeze suspends the machine for d. It returns false if it is suspended.
func (c *Clock) Freeze(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Before(c.thaw) {
		return false
	}
	c.frozen, c.thaw = now, now.Add(d)
	return true
}

// Frozen is how long the machine stays suspended, zero if it is not.
func (c *Clock) Frozen() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Until(c.thaw))
}
