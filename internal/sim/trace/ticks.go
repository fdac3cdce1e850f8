package trace

import (
	"slices"
	"time"
)

// The ticks of a job as the judge knows them. It has no schedule and no calendar: ticks are the multiples of
// a period, within the times that the simulation has written down.

// A Time is one in which a job has ticks: from the one instant, before the other. Zero: without that bound.
type Time struct{ From, Before time.Time }

// forever is later than any tick.
var forever = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Bound leaves the job no ticks before one instant, nor at another and later.
func (d *Definition) Bound(from, before time.Time) {
	var left []Time
	for _, t := range d.times() {
		t = Time{later(t.From, from), t.Before}
		if !before.IsZero() && (t.Before.IsZero() || before.Before(t.Before)) {
			t.Before = before
		}
		if t.Before.IsZero() || t.From.Before(t.Before) {
			left = append(left, t)
		}
	}
	if len(left) == 0 {
		left = []Time{{From: forever}}
	}
	d.Open = left
}

// times returns when the job has ticks, in order.
func (d *Definition) times() []Time {
	if len(d.Open) == 0 {
		return []Time{{}}
	}
	return d.Open
}

// After is the first tick after t, and in times to come if there is none.
func (d *Definition) After(t time.Time) time.Time {
	for _, o := range d.times() {
		tick := d.multiple(t, 1)
		if tick.Before(o.From) {
			tick = d.multiple(o.From.Add(-1), 1)
		}
		if o.Before.IsZero() || tick.Before(o.Before) {
			return tick
		}
	}
	return forever
}

// Last is the last tick up to t, and in times long past if there is none.
func (d *Definition) Last(t time.Time) time.Time {
	for _, o := range slices.Backward(d.times()) {
		tick := d.multiple(t, 0)
		if !o.Before.IsZero() && !tick.Before(o.Before) {
			tick = d.multiple(o.Before.Add(-1), 0)
		}
		if !tick.Before(o.From) {
			return tick
		}
	}
	return time.Time{}
}

// multiple is the last multiple of the period up to t, or the n-th after it.
func (d *Definition) multiple(t time.Time, n int64) time.Time {
	return time.Unix(0, (t.UnixNano()/int64(d.Every)+n)*int64(d.Every))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
