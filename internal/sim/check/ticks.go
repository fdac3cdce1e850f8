package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The ticks of a job as the checker knows them. It has no schedule and no calendar: ticks are the multiples of
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

// multiple is the last multiple of the period up to t, or one that comes n later.
func (d *Definition) multiple(t time.Time, n int64) time.Time {
	return time.Unix(0, (t.UnixNano()/int64(d.Every)+n)*int64(d.Every))
}

// count is the number of ticks after a, up to b.
func (d *Definition) count(a, b time.Time) (n int) {
	for _, o := range d.times() {
		from, to := later(a, o.From.Add(-1)), b
		if !o.Before.IsZero() && !to.Before(o.Before) {
			to = o.Before.Add(-1)
		}
		n += max(0, int(to.UnixNano()/int64(d.Every)-from.UnixNano()/int64(d.Every)))
	}
	return n
}

// has reports whether an instant is a tick of a job with limits.
func (d *Definition) has(t time.Time) bool { return len(d.Open) == 0 || d.Last(t).Equal(t) }

// named: each tick that a replica claims, or whose outcome it writes, is one of its definition, where that
// has limits. How many ticks there are others judge.
func named(l *Log, bad report) {
	for _, job := range l.index.jobs {
		if len(l.of(job, Corrupted)) > 0 {
			continue // an operator may have written any tick
		}
		for _, e := range l.claimed(job) {
			d, r := l.definition(e.Replica, job), &e.Record.Run
			if d != nil && d.Every > 0 && r.Request == "" && r.Attempt <= 1 && !d.has(r.Tick) {
				bad(e.Time, "%s claims %s of %s, which is no tick of it", e.Replica, TimeOfDay(r.Tick), job)
			}
		}
		for _, n := range l.index.told[job] {
			d, f := l.definition(n.write.Replica, job), n.outcome
			if d != nil && d.Every > 0 && f.Request == "" && f.Token == 0 && f.Status != store.Abandoned && !n.changes() && !d.has(f.Tick) {
				bad(n.write.Time, "%s writes that %s of %s is %s, which is no tick of it", n.write.Replica, TimeOfDay(f.Tick), job, f.Status)
			}
		}
	}
}

// changes reports whether a write told an outcome in bringing another definition into force. It covers the time until then,
// which is no tick.
func (n *told) changes() bool {
	return n.before != nil && n.before.Definition.Spec != n.write.Record.Definition.Spec
}
