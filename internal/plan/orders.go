package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
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

// IsPaused reports whether the job is paused, by an operator or by itself.
func (v View) IsPaused() bool { return v.Control.Pause.On(v.Now) || selfPaused(v.Record, v.Control) }

// pauseEnds returns when the pause ends if nothing is ordered. It is zero if there is none, or if an order has to end it, which
// wakes the app up.
func (v View) pauseEnds() time.Time {
	if !v.Control.Pause.On(v.Now) || selfPaused(v.Record, v.Control) {
		return time.Time{}
	}
	return v.Control.Pause.Until
}

// selfPaused reports whether the job has paused itself and was not resumed since.
func selfPaused(r *record.Record, c record.JobControl) bool {
	pause := r.Orders.Paused
	return !pause.At.IsZero() && c.Resumed.Token < pause.Token
}

// LastOver returns the token of the last run that a resume is about. That is one that is over: a run under way, or a tick that
// waits for another attempt, may be the failure that pauses the job yet. It is the last run if the job has paused itself.
func LastOver(r *record.Record) int64 {
	if unsettled(r) && r.Orders.Paused.At.IsZero() {
		return r.Token - 1
	}
	return r.Token
}

// InPause reports whether a tick of a job without a record came due in a pause, as far as the orders show.
func (p *Policy) InPause(tick time.Time, c record.JobControl, now time.Time) bool {
	_, in := pauseOf(tick, p.pausesUntil(&record.Record{}, c, now))
	return in
}

// pausesUntil returns the times in which the job of a record was paused, or is at an instant. If its settings pause it, each
// tick without an outcome is one of a pause.
func (p *Policy) pausesUntil(r *record.Record, c record.JobControl, at time.Time) []record.Span {
	spans := slices.Concat(c.Pauses, r.Orders.Pauses)
	if p.Paused {
		spans = append(spans, record.Span{From: r.Watermark, To: at})
	}
	switch pause := c.Pause; {
	case pause.On(at):
		spans = append(spans, record.Span{From: pause.At, To: at})
	case !pause.At.IsZero():
		spans = append(spans, record.Span{From: pause.At, To: pause.Until.Add(-1)})
	}
	switch pause := r.Orders.Paused; {
	case selfPaused(r, c):
		spans = append(spans, record.Span{From: pause.At, To: at})
	case !pause.At.IsZero():
		spans = append(spans, record.Span{From: pause.At, To: c.Resumed.At})
	}
	return spans
}

// resume notes that a job which has paused itself was resumed, and returns whether that is new.
// The record keeps the time of the pause while older ticks wait: under RunAll they are run first.
func resume(r *record.Record, c record.JobControl) (noted bool) {
	over := slices.DeleteFunc(slices.Clone(r.Orders.Pauses), func(s record.Span) bool { return !s.To.After(r.Watermark) })
	if from := r.Orders.Paused.At; !from.IsZero() && !selfPaused(r, c) {
		over = append(over, record.Span{From: from, To: c.Resumed.At})
		r.Orders.Paused, r.Orders.Spared = record.SelfPause{}, r.Failures
		noted = true
	}
	r.Orders.Pauses = over[max(0, len(over)-maxPauses):]
	return noted
}

// lastOutside returns the last tick at or before an instant that came due in no pause.
func lastOutside(ticks Ticks, at time.Time, pauses []record.Span) time.Time {
	tick := ticks.Last(at)
	for s, in := pauseOf(tick, pauses); in; s, in = pauseOf(tick, pauses) {
		tick = ticks.Last(s.From)
	}
	return tick
}

// firstOutside returns the first tick after an instant that comes due in no pause.
func firstOutside(ticks Ticks, after time.Time, pauses []record.Span) time.Time {
	tick := ticks.Next(after)
	for s, in := pauseOf(tick, pauses); in; s, in = pauseOf(tick, pauses) {
		tick = ticks.Next(s.To)
	}
	return tick
}

// pauseOf returns a pause in which a tick comes due.
func pauseOf(tick time.Time, pauses []record.Span) (s record.Span, ok bool) {
	i := slices.IndexFunc(pauses, func(s record.Span) bool { return isIn(tick, s) })
	if i < 0 {
		return s, false
	}
	return pauses[i], true
}

func isIn(tick time.Time, s record.Span) bool { return tick.After(s.From) && !tick.After(s.To) }

// pausedThrough returns the last instant of the pause in which a tick came due, and of those that follow it without a gap.
// It is zero if there is none.
func pausedThrough(tick time.Time, pauses []record.Span) (last time.Time) {
	for s, in := pauseOf(tick, pauses); in; s, in = pauseOf(last.Add(1), pauses) {
		last = s.To
	}
	return last
}

// nextPause returns the begin and the end of the first pause that has a part after through and
// at or before last. Without one, both are last.
func nextPause(through, last time.Time, pauses []record.Span) (from, to time.Time) {
	from, to = last, last
	for _, s := range pauses {
		if s.To.After(through) && s.From.Before(from) && s.To.After(s.From) {
			from, to = s.From, instant.Earlier(s.To, last)
		}
	}
	return from, to
}

// Ordered reports whether a manual run was ordered that waits for a claim, and a claim would write something of it.
func Ordered(p *Policy, v View) bool {
	if len(v.Control.Requests) == 0 || v.waiting() == nil || p.Ticks == nil || p.Outdated(v) {
		return false
	}
	c := newClaiming(p, v)
	noteServed(&c.next.Record, v.Control.Requests)
	return c.claimOrdered()
}

// waiting returns the oldest run that was ordered and has neither begun nor its outcome, also if its time is up; nil: there is
// none.
func (v View) waiting() *record.Request {
	i := slices.IndexFunc(v.Control.Requests, func(q record.Request) bool { return !v.Record.Orders.IsServed(q.Seq) })
	if i < 0 {
		return nil
	}
	return &v.Control.Requests[i]
}

// claimOrdered claims the oldest manual run that was ordered and not served. It settles
// requests that cannot be run any more, and those that were made while the job was running:
// they are skipped, as a tick is, unless the job makes up for all its ticks.
func (c *claiming) claimOrdered() (changed bool) {
	r, w := &c.next.Record, c.writing()
	for _, q := range c.v.Control.Requests {
		switch {
		case r.Orders.IsServed(q.Seq):
			continue
		case w.full():
			return changed
		case c.v.Now.After(q.Until):
			settle(r, event.Outcome{Tick: q.At.UTC(), Request: q.Name, Status: event.Missed, Reason: "no replica could run it in time"})
		case c.Late.Missed != RunAll && !isBackfill(c.v.Record) && under(c.v.Record, q.At):
			settle(r, event.Outcome{Tick: q.At.UTC(), Request: q.Name, Status: event.Skipped, Reason: "overlap"})
		case c.next.Run || c.v.Claims == NoRun || unsettled(r) && !c.abandonInPause():
			return changed
		default:
			c.claimByHand(q.Name)
			r.Run.Order = q.Seq
			serve(&r.Orders, q.Seq)
			return true
		}
		serve(&r.Orders, q.Seq)
		changed = true
	}
	return changed
}

// settleCancelledOrder settles an ordered run whose claim was given up and cancelled: after any other claim the record does not
// show the claim that the order to cancel names.
func settleCancelledOrder(r *record.Record, v View) bool {
	i := slices.IndexFunc(v.Control.Requests, func(q record.Request) bool { return q.Seq == r.Orders.Returned.Order })
	if i < 0 || r.Orders.IsServed(r.Orders.Returned.Order) || !v.end().Cancel {
		return false
	}
	q := &v.Control.Requests[i]
	settleReturned(r, event.Outcome{Tick: q.At.UTC(), Request: q.Name, Attempt: 1}, v.end())
	serveEarly(&r.Orders, q.Seq)
	return true
}

// passedOver reports whether a run that was ordered has waited while a tick was run. Then it is
// the next, or a job that is always behind with its ticks would never run it.
func (v View) passedOver() bool {
	q := v.waiting()
	return q != nil && v.Record.Run.Request == "" && q.At.Before(v.Record.Run.Claimed)
}

// under reports whether an order surely came during the last run. The time of an order is the
// earliest that it can have been, and the end of a run is the latest. The end of a run which has stalled and was not known to
// return is not known: its outcome has none, and Finished is when it was settled.
func under(r *record.Record, at time.Time) bool {
	const doubt = 2 * time.Second
	end := r.Run.Finished
	if r.Run.Status == event.Stalled {
		i := slices.IndexFunc(r.History, func(f event.Outcome) bool { return f.Status == event.Stalled && f.Start.Equal(r.Run.Claimed) })
		if i < 0 {
			return false
		}
		end = r.History[i].End
	}
	return at.After(r.Run.Claimed) && at.Add(doubt).Before(end)
}

// MayBeCancelled reports whether an order to cancel the run of the last claim may still come: that run has no outcome yet.
func MayBeCancelled(r *record.Record) bool {
	return undecided(r) || r.Orders.Returned != record.Returned{}
}

// end returns the order to end the run of the last claim, or what that claim was for; zero: there is none.
func (v View) end() record.End { return v.Control.EndOf(v.Record.Token, AboutLast(v.Record)) }

// AboutLast returns what the last claim was for. A manual run that was not ordered is known by its token alone.
func AboutLast(r *record.Record) (a record.About) {
	switch back := r.Orders.Returned; {
	case back.Order != 0 && !back.Tick.IsZero():
		return record.About{Tick: lastOpen(r, back.Tick), Order: back.Order, Attempt: r.Backfill.Attempt + 1}
	case back != record.Returned{}:
		return record.About{Tick: back.Tick, Order: back.Order, Attempt: 1}
	case r.Run.Request != "" && r.Run.Order == 0:
		return a
	case r.Run.Order != 0 && !isBackfill(r):
		return record.About{Order: r.Run.Order, Attempt: 1}
	}
	return record.About{Tick: lastOpen(r, r.Run.Tick), Order: r.Run.Order, Attempt: r.Run.Attempt}
}

// settleCancelled settles a tick whose claim was given up and cancelled, before a manual run is
// claimed: after that the order to cancel names a claim that the record does not show any more.
func (c *claiming) settleCancelled() {
	r := &c.next.Record
	tick := r.Orders.Returned.Tick
	if tick.IsZero() || tick.After(c.v.Now) || r.Definition.Spec != c.Spec || !c.v.end().Cancel {
		return
	}
	if c.Follows() { // the claim has settled the ticks before it, and what it waited for need not be known any more
		if c.Ticks.Next(r.Watermark).Equal(tick) {
			settleReturned(r, event.Outcome{Tick: tick, Attempt: 1}, c.v.end())
		}
		return
	}
	view := c.v
	c.v.Now, c.v.Claims = tick, NoRun // ticks after it are left to the next claim
	c.claimDue()
	c.v = view
}

// settleReturned writes the outcome of a claim that was given up and cancelled.
func settleReturned(r *record.Record, f event.Outcome, end record.End) {
	f.Status, f.Reason, f.Token = event.Cancelled, CancelledBy(end), end.Token
	settle(r, f)
	r.Orders.Returned = record.Returned{}
}

// CancelledBy returns the reason of a run that an operator has cancelled.
func CancelledBy(e record.End) string {
	if e.Reason == "" {
		return "by " + e.By
	}
	return "by " + e.By + ": " + e.Reason
}

// Knows reports whether the record shows the run or the outcome of a request.
func Knows(r *record.Record, request string) bool {
	return r.Run.Request == request || slices.ContainsFunc(r.History, func(f event.Outcome) bool { return f.Request == request })
}

// Served reports whether the request of a manual call was ordered and is served, and the record
// does not show its run any more: history keeps the last outcomes alone.
func Served(v View) bool {
	return !Knows(v.Record, v.Request) && slices.ContainsFunc(v.Control.Requests, func(q record.Request) bool {
		return q.Name == v.Request && v.Record.Orders.IsServed(q.Seq)
	})
}

// noteServed notes which of the requests that wait are served, as the record shows: a manual call has run them before their turn.
// The outcomes of those before them may push theirs out of history.
func noteServed(r *record.Record, requests []record.Request) {
	o, inTurn := &r.Orders, true
	for _, q := range requests {
		switch {
		case q.Seq <= o.Served:
		case !o.IsServed(q.Seq) && !Knows(r, q.Name):
			inTurn = false
		case inTurn:
			serve(o, q.Seq)
		case !o.IsServed(q.Seq):
			serveEarly(o, q.Seq)
		}
	}
}

// serve notes that all requests up to an order have their run or their outcome.
func serve(o *record.Orders, order int64) {
	o.Served = order
	o.Early = slices.DeleteFunc(slices.Clone(o.Early), func(early int64) bool { return early <= order })
	if back := o.Returned; back.Tick.IsZero() && back.Order <= order { // nothing of that claim is left to cancel
		o.Returned = record.Returned{}
	}
}

// serveEarly notes that the request of an order has its run, and perhaps older ones have not.
func serveEarly(o *record.Orders, order int64) { o.Early = append(slices.Clone(o.Early), order) }

// unserve notes that the last claim does not serve its order after all: another replica does.
func unserve(o *record.Orders, order int64) {
	o.Served = min(o.Served, order-1)
	o.Early = slices.DeleteFunc(slices.Clone(o.Early), func(early int64) bool { return early == order })
}

// maxEarly is how many orders a record names at most that are served before their turn: each takes 17 bytes of it.
const maxEarly = 20

// BeforeTurn returns the run that has to be served before a manual call runs what was ordered after it, since the record names too
// many such orders; empty: there is none.
func BeforeTurn(v View) string {
	first, served := v.waiting(), &v.Record.Orders
	later := func(q record.Request) bool {
		return q.Name == v.Request && q.Seq > first.Seq && !served.IsServed(q.Seq)
	}
	if first == nil || len(served.Early) < maxEarly || !slices.ContainsFunc(v.Control.Requests, later) {
		return ""
	}
	return first.Name
}
