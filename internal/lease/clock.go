package lease

import (
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

// An error of the wall clock of more than skewWrong is reported, and its end at skewRight: in
// between, an answer that took long must not make it seem right and wrong in turn.
const (
	skewWrong = 5 * time.Second
	skewRight = time.Second
)

// Drift is by how much the rates of two clocks may differ: one part in so many. It is the
// only assumption about clocks: what they show does not matter. docs/correctness.md, H1.
const Drift = 100

// A Clock knows the service's time within bounds, from the dates of its answers. An
// answer was dated between the sending of its request and its arrival, so it leaves room
// for the round trip and for the fraction of a second that the date leaves out. Where the
// bounds of several answers overlap, the true time is in the overlap. The bounds widen
// with the time since the last answer, by Drift. No replica's wall clock enters into them.
//
// If an answer proves that the wall clock is wrong, Clock corrects it by as much as was
// proved, and keeps the correction while the bounds widen again.
type Clock struct {
	Wall    func() time.Time     // of this replica
	Elapsed func() time.Duration // since some fixed instant; it counts suspensions of the machine and no steps of the wall clock

	// Skewed is called when an answer proves the wall clock wrong by more than five seconds,
	// and with zero when a later answer leaves it an error of at most one. Nil: it is not.
	Skewed func(by time.Duration)

	mu     sync.Mutex
	known  bool          // an answer had a date
	off    time.Duration // the correction of the wall clock
	wrong  bool          // Skewed has said so
	at     time.Duration // elapsed time at which lo and hi were the bounds
	lo, hi time.Time
}

// Observe takes in the date of an answer whose request was sent at sent, in elapsed time.
func (c *Clock) Observe(sent time.Duration, date time.Time) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	now, wall := c.Elapsed(), c.Wall()
	lo, hi := date, date.Add(now-sent)
	// A Date header has whole seconds (https://www.rfc-editor.org/rfc/rfc9110#name-date-time-formats), so the service's clock may
	// be ahead of it. A date with a fraction is exact.
	if date.Nanosecond() == 0 {
		hi = hi.Add(time.Second)
	}
	// Bounds that do not overlap prove that one answer had a wrong date, for example
	// after a correction of the service's clock. Then the new one counts.
	if old := c.reading(now); c.known && old.Earliest.Before(hi) && lo.Before(old.Latest) {
		lo, hi = instant.Later(lo, old.Earliest), instant.Earlier(hi, old.Latest)
	}
	c.known, c.at, c.lo, c.hi = true, now, lo, hi
	c.off = instant.Earlier(instant.Later(wall, lo), hi).Sub(wall)
	skew, turned := -c.off, false
	switch {
	case !c.wrong && skew.Abs() > skewWrong:
		c.wrong, turned = true, true
	case c.wrong && skew.Abs() <= skewRight:
		c.wrong, turned, skew = false, true, 0
	}
	c.mu.Unlock()
	if turned && c.Skewed != nil {
		c.Skewed(skew)
	}
}

// A Time is what a Clock knows of the time at one moment.
type Time struct {
	// Best is the time of the wall clock, corrected as far as the service's clock proves
	// it wrong. It decides which ticks are due, and nothing that has to be certain.
	Best time.Time

	Earliest, Latest time.Time // that the service's clock can show; zero while no answer had a date
}

// Now reads the clock.
func (c *Clock) Now() Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading(c.Elapsed())
}

// Best is Now for what needs no more of it.
func (c *Clock) Best() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading(c.Elapsed()).Best
}

// reading returns what is known at the elapsed time now. The caller holds mu.
func (c *Clock) reading(now time.Duration) Time {
	t := Time{Best: c.Wall().Add(c.off)}
	if c.known {
		gone := now - c.at
		slack := gone / Drift
		t.Earliest, t.Latest = c.lo.Add(gone-slack), c.hi.Add(gone+slack)
		t.Best = instant.Earlier(instant.Later(t.Best, t.Earliest), t.Latest)
	}
	return t
}

// Skew returns by how much the wall clock is certainly ahead of the service's clock, or
// behind it if negative. Zero: no error is proved.
func (c *Clock) Skew() time.Duration {
	now, wall := c.Now(), c.Wall()
	if now.Latest.IsZero() {
		return 0
	}
	return wall.Sub(instant.Earlier(instant.Later(wall, now.Earliest), now.Latest))
}
