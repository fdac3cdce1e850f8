// Package watch looks at the clock and the store while a program serves, and logs
// what an operator has to mend.
package watch

import (
	"context"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/ontime"
)

const (
	clockFirst = time.Second // the scheduler has asked the store by then
	clockEvery = 30 * time.Second
)

// A Clock says once that this machine's clock is wrong, and once that it
// is right again.
type Clock struct {
	log   *slog.Logger
	skew  func() time.Duration       // as far as it is proved
	ask   func(context.Context) bool // has the store answer; false: it did not
	wrong bool
}

// NewClock watches by skew, which is how far the clock is off as far as that is
// proved. ask has the store answer, and reports whether it did.
func NewClock(log *slog.Logger, skew func() time.Duration, ask func(context.Context) bool) *Clock {
	return &Clock{log: log, skew: skew, ask: ask}
}

// Look compares. A proof fades with the answer that it is from, so the clock is
// right again only by a new one.
func (c *Clock) Look(ctx context.Context) {
	skew := c.skew()
	if c.wrong && skew.Abs() <= format.SkewShown {
		if !c.ask(ctx) {
			return
		}
		skew = c.skew()
	}
	switch {
	case !c.wrong && skew.Abs() > format.SkewWrong:
		c.wrong = true
		c.log.Warn(format.SkewWords(skew)+", by which ticks are run: put it right", "skew", skew.Round(time.Millisecond))
	case c.wrong && skew.Abs() <= format.SkewShown:
		c.wrong = false
		c.log.Info("this machine's clock is right again")
	}
}

// Run looks until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	for wait := clockFirst; ontime.Sleep(ctx, wait); wait = clockEvery {
		c.Look(ctx)
	}
}
