package ticks

import (
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
)

// Limits are what a job says about its ticks in addition to the schedule. The zero value
// limits nothing.
type Limits struct {
	From, Until time.Time           // zero: there is no such bound
	Except      []calendar.Calendar // a tick on a day of one of them does not exist
	Only        []calendar.Calendar // nor does one on a day of none of them; empty: each day will do
	Shift       Shift               // what becomes of such a tick
}

// bounded reports whether there is a bound.
func (l *Limits) bounded() bool { return !l.From.IsZero() || !l.Until.IsZero() }

// A Shift says what becomes of a tick on an excluded day.
type Shift string

// The constants of the root explain them.
const (
	NoShift       Shift = ""
	ShiftNext     Shift = "next"
	ShiftPrevious Shift = "previous"
)

// MaxShift is how many days a tick moves at most.
const MaxShift = 31

// Ticks are the ticks of a job. They never change and may be shared.
type Ticks struct {
	*schedule.Schedule
	limits    Limits
	wall      schedule.Wall
	out       *set    // the excluded days; nil: each day will do
	calendars []named // that exclude days
	sums      sums
}

// Next returns the first tick after an instant, zero if there is none.
func (t *Ticks) Next(after time.Time) time.Time {
	if from := t.limits.From; after.Before(from) {
		after = from.Add(-1)
	}
	next := t.next(after)
	if until := t.limits.Until; !until.IsZero() && !next.Before(until) {
		return time.Time{}
	}
	return next
}

// Last returns the last tick at or before an instant, zero if there is none.
func (t *Ticks) Last(at time.Time) time.Time {
	if until := t.limits.Until; !until.IsZero() && !at.Before(until) {
		at = until.Add(-1)
	}
	last := t.last(at)
	if last.Before(t.limits.From) {
		return time.Time{}
	}
	return last
}

// Count returns how many ticks are after one instant and up to another, at most limit.
func (t *Ticks) Count(after, to time.Time, limit int) (n int) {
	for at := t.Next(after); n < limit && !at.IsZero() && !at.After(to); at = t.Next(at) {
		n++
	}
	return n
}

// next and last are Next and Last without the bounds.
func (t *Ticks) next(after time.Time) time.Time {
	if t.out == nil {
		return t.Schedule.Next(after)
	}
	next, ok := t.allowed(after.Unix())
	if !ok {
		return time.Time{}
	}
	return time.Unix(next, 0).UTC()
}

func (t *Ticks) last(at time.Time) time.Time {
	if t.out == nil {
		return t.Schedule.Last(at)
	}
	return schedule.Latest(at, t.allowed)
}
