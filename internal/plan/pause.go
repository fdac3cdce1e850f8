package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// What operators order reaches a replica a few seconds later; see internal/control. Each
// replica decides by what it has read, and the record makes one decision of it:
//
//   - While a job is paused nothing of it starts but a manual run. Nothing is written for
//     the ticks that come due, also if they come due under a run. A tick that waits for another attempt goes on waiting.
//   - The first claim after the pause records its ticks as skipped. A pause that is over is
//     kept for that: the ticks may have come due while no replica was up.
//   - The first replica that reads the resume of a job which has paused itself notes it in the
//     record. From then on the job goes on, also if the document of the orders is lost.
//   - A manual run that was ordered is claimed once: the record keeps the number of the last
//     order that was served, and orders are served in their order.

// PausedAt reports whether the job is paused, by an operator or by itself.
func (p *Policy) PausedAt(v View) bool {
	return v.Control.Pause.On(v.Now) || selfPaused(v.Record, v.Control)
}

// selfPaused reports whether the job has paused itself and was not resumed since.
func selfPaused(r *store.Record, c store.JobControl) bool {
	pause := r.Orders.Paused
	return !pause.At.IsZero() && c.Resumed.Token < pause.Token
}

// LastOver returns the token of the last run that a resume is about. That is one that is over: a run under way, or a tick that
// waits for another attempt, may be the failure that pauses the job yet. It is the last run if the job has paused itself.
func LastOver(r *store.Record) int64 {
	if unsettled(r) && r.Orders.Paused.At.IsZero() {
		return r.Token - 1
	}
	return r.Token
}

// InPause reports whether a tick of a job without a record came due in a pause, as far as the orders show.
func (p *Policy) InPause(tick time.Time, c store.JobControl, now time.Time) bool {
	_, in := pauseOf(tick, p.pausesUntil(&store.Record{}, c, now))
	return in
}

// pauseLeft returns how long the pause lasts if nothing is ordered.
func (p *Policy) pauseLeft(v View) time.Duration {
	if until := v.Control.Pause.Until; v.Control.Pause.On(v.Now) && !until.IsZero() && !selfPaused(v.Record, v.Control) {
		return max(until.Sub(v.Now), minIdle)
	}
	return maxSleep
}

// pausesUntil returns the times in which the job of a record was paused, or is at an instant. If its settings pause it, each
// tick without an outcome is one of a pause.
func (p *Policy) pausesUntil(r *store.Record, c store.JobControl, at time.Time) []store.Span {
	spans := slices.Concat(c.Pauses, r.Orders.Pauses)
	if p.Paused {
		spans = append(spans, store.Span{From: r.Watermark, To: at})
	}
	switch pause := c.Pause; {
	case pause.On(at):
		spans = append(spans, store.Span{From: pause.At, To: at})
	case !pause.At.IsZero():
		spans = append(spans, store.Span{From: pause.At, To: pause.Until.Add(-1)})
	}
	switch pause := r.Orders.Paused; {
	case selfPaused(r, c):
		spans = append(spans, store.Span{From: pause.At, To: at})
	case !pause.At.IsZero():
		spans = append(spans, store.Span{From: pause.At, To: c.Resumed.At})
	}
	return spans
}

// resume notes that a job which has paused itself was resumed, and returns whether that is new.
// The record keeps the time of the pause while older ticks wait: under RunAll they are run first.
func resume(r *store.Record, c store.JobControl) (noted bool) {
	over := slices.DeleteFunc(slices.Clone(r.Orders.Pauses), func(s store.Span) bool { return !s.To.After(r.Watermark) })
	if from := r.Orders.Paused.At; !from.IsZero() && !selfPaused(r, c) {
		over = append(over, store.Span{From: from, To: c.Resumed.At})
		r.Orders.Paused, r.Orders.Spared = store.SelfPause{}, r.Failures
		noted = true
	}
	r.Orders.Pauses = over[max(0, len(over)-maxPauses):]
	return noted
}

// lastOutside returns the last tick at or before an instant that came due in no pause.
func (p *Policy) lastOutside(at time.Time, pauses []store.Span) time.Time {
	tick := p.Ticks.Last(at)
	for s, in := pauseOf(tick, pauses); in; s, in = pauseOf(tick, pauses) {
		tick = p.Ticks.Last(s.From)
	}
	return tick
}

// firstOutside returns the first tick after an instant that comes due in no pause.
func (p *Policy) firstOutside(after time.Time, pauses []store.Span) time.Time {
	tick := p.Ticks.Next(after)
	for s, in := pauseOf(tick, pauses); in; s, in = pauseOf(tick, pauses) {
		tick = p.Ticks.Next(s.To)
	}
	return tick
}

// pauseOf returns a pause in which a tick comes due.
func pauseOf(tick time.Time, pauses []store.Span) (s store.Span, ok bool) {
	for _, s := range pauses {
		if tick.After(s.From) && !tick.After(s.To) {
			return s, true
		}
	}
	return s, false
}

// pausedThrough returns the last instant of the pause in which a tick came due, and of those that follow it without a gap.
// It is zero if there is none.
func pausedThrough(tick time.Time, pauses []store.Span) (last time.Time) {
	for s, in := pauseOf(tick, pauses); in; s, in = pauseOf(last.Add(1), pauses) {
		last = s.To
	}
	return last
}

// passAll settles the ticks up to last, which no replica runs: ticks of a pause as skipped, the others as left says. It returns
// false if the write has no room for all.
func (p *Policy) passAll(w *write, last time.Time, left fate, pauses []store.Span) bool {
	r := w.Record
	for through := r.Watermark; through.Before(last); {
		if w.full() {
			return false
		}
		from, to := nextPause(through, last, pauses)
		if outside := p.Ticks.Last(from); outside.After(r.Watermark) {
			p.passOutside(r, outside, left)
		}
		if in := p.Ticks.Last(to); in.After(r.Watermark) {
			p.pass(r, in, store.Skipped, Paused)
		}
		through = to
	}
	return true
}

// passOutside settles the ticks up to last, which came due in no pause. Those that have waited for a slot of their group are
// skipped.
func (p *Policy) passOutside(r *store.Record, last time.Time, left fate) {
	upTo := func(at time.Time, status store.Status, reason string) {
		if tick := p.Ticks.Last(instant.Earlier(at, last)); tick.After(r.Watermark) {
			p.pass(r, tick, status, reason)
		}
	}
	if waited := left.waited; !waited.To.IsZero() {
		upTo(waited.From, left.status, left.reason)
		upTo(waited.To, store.Skipped, "group "+p.Group)
	}
	upTo(last, left.status, left.reason)
}

// nextPause returns the begin and the end of the first pause that has a part after through and
// at or before last. Without one, both are last.
func nextPause(through, last time.Time, pauses []store.Span) (from, to time.Time) {
	from, to = last, last
	for _, s := range pauses {
		if s.To.After(through) && s.From.Before(from) && s.To.After(s.From) {
			from, to = s.From, instant.Earlier(s.To, last)
		}
	}
	return from, to
}
