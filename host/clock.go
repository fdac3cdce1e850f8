package host

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	skewShown = time.Second     // by so much the clock may be off without a word
	skewWrong = 5 * time.Second // by more it is warned of

	clockFirst = time.Second // the scheduler has asked the store by then
	clockEvery = 30 * time.Second
)

// A clockWatch says once that this machine's clock is wrong, and once that it
// is right again.
type clockWatch struct {
	log   *slog.Logger
	skew  func() time.Duration       // as far as it is proved
	ask   func(context.Context) bool // has the store answer; false: it did not
	wrong bool
}

// look compares. A proof fades with the answer that it is from, so the clock is
// right again only by a new one.
func (c *clockWatch) look(ctx context.Context) {
	skew := c.skew()
	if c.wrong && skew.Abs() <= skewShown {
		if !c.ask(ctx) {
			return
		}
		skew = c.skew()
	}
	switch {
	case !c.wrong && skew.Abs() > skewWrong:
		c.wrong = true
		c.log.Warn(skewWords(skew)+", by which ticks are run: put it right", "skew", skew.Round(time.Millisecond))
	case c.wrong && skew.Abs() <= skewShown:
		c.wrong = false
		c.log.Info("this machine's clock is right again")
	}
}

// run looks until ctx ends.
func (c *clockWatch) run(ctx context.Context) {
	for wait := clockFirst; ; wait = clockEvery {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
			c.look(ctx)
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

func (a *app) skew() time.Duration { return a.sched.Health().Skew }

// watchClock looks at the clock in the background; done waits for the end of
// that, which comes with the end of ctx.
func (a *app) watchClock(ctx context.Context, b *board) (done func()) {
	c := &clockWatch{log: a.log, skew: a.skew, ask: b.fresh}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run(ctx)
	}()
	return func() { <-ended }
}

// skewWords says how far the clock is off.
func skewWords(skew time.Duration) string {
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s the store's", skew.Abs().Round(100*time.Millisecond), way)
}

// skewNote is skewWords where that is worth a word.
func skewNote(skew time.Duration) string {
	if skew.Abs() <= skewShown {
		return ""
	}
	return skewWords(skew)
}

// skewSeconds is how JSON tells it.
func skewSeconds(skew time.Duration) float64 { return skew.Round(time.Millisecond).Seconds() }
