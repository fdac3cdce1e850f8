package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A Predecessor is what is known of a job that a follower waits for.
type Predecessor struct {
	Job       string
	Watermark time.Time       // of its record; zero: the record is not known
	History   []store.Outcome // of its record
	Seen      time.Time       // when this watermark was first seen: the time of outcomes that have none
}

// DecidedBy returns the instant up to which all ticks of all predecessors have outcomes.
func DecidedBy(before []Predecessor) (by time.Time) {
	for i, b := range before {
		if i == 0 || b.Watermark.Before(by) {
			by = b.Watermark
		}
	}
	return by
}

// outcome returns the outcome of a tick up to the watermark, nil if the record does not have it
// any more, and until when the ticks that follow have the same.
func (b *Predecessor) outcome(tick time.Time) (o *store.Outcome, until time.Time) {
	until = b.Watermark
	for i := range b.History {
		o := &b.History[i]
		switch {
		case o.Request != "":
		case o.From.IsZero() && o.Tick.Equal(tick):
			return o, tick
		case !o.From.IsZero() && tick.After(o.From) && !tick.After(o.Tick):
			return o, o.Tick
		case o.From.IsZero() && o.Tick.After(tick):
			until = instant.Earlier(until, o.Tick.Add(-1))
		case !o.From.IsZero() && !o.From.Before(tick): // its ticks come after From
			until = instant.Earlier(until, o.From)
		}
	}
	return nil, until
}
