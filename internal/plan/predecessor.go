package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A Predecessor is what is known of a job that a follower waits for.
type Predecessor struct {
	Job       string
	Watermark time.Time       // of its record; zero: the record is not known
	History   []store.Outcome // of its record
	Seen      []Seen          // oldest first: the time of outcomes that have no end; never changed in place
}

// A Seen says when outcomes without an end were first seen.
type Seen struct {
	Through time.Time // of the ticks after the Seen before, up to here
	At      time.Time
}

// Updated returns what is known of the predecessor by its record as it is now.
func (b Predecessor) Updated(r *store.Record, now time.Time) Predecessor {
	if r.Watermark.Before(b.Watermark) { // of an entry that was created again
		b.Watermark, b.Seen = time.Time{}, nil
	}
	isNew := func(o store.Outcome) bool { return o.Request == "" && o.End.IsZero() && o.Tick.After(b.Watermark) }
	if slices.ContainsFunc(r.History, isNew) {
		b.Seen = slices.Concat(b.Seen[max(0, len(b.Seen)+1-maxBacklog):], []Seen{{r.Watermark, now}})
	}
	b.Watermark, b.History = r.Watermark, slices.Clone(r.History)
	return b
}

// PredecessorOf returns what a record says about a job that others follow.
func PredecessorOf(r *store.Record, now time.Time) Predecessor {
	return Predecessor{Job: r.Job}.Updated(r, now)
}

// seen returns when the outcome of a tick was seen that has no end, and until which tick it is the same.
func (b *Predecessor) seen(tick time.Time) (at, through time.Time) {
	for _, s := range b.Seen {
		if !s.Through.Before(tick) {
			return s.At, s.Through
		}
	}
	return time.Time{}, b.Watermark
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

// notBefore returns the instant after which the ticks of a job count that is new, or has a changed definition: a follower
// has no tick that comes before the first of a new predecessor.
func notBefore(from time.Time, before []Predecessor) time.Time {
	for _, b := range before {
		if o, _ := b.outcome(b.Watermark); o == nil { // it has settled no tick yet
			from = instant.Later(from, b.Watermark)
		}
	}
	return from
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
