package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Ordered reports whether a manual run was ordered that waits for a claim.
func (p *Policy) Ordered(v View) bool {
	if waiting(v) == nil || p.Ticks == nil || p.Outdated(v) {
		return false
	}
	return settlesOrder(p, v)
}

// waiting returns the oldest run that was ordered and has neither begun nor its outcome, also if its time is up; nil: there is
// none.
func waiting(v View) *store.Request {
	for i := range v.Control.Requests {
		if q := &v.Control.Requests[i]; !v.Record.Orders.IsServed(q.Seq) {
			return q
		}
	}
	return nil
}

// settlesOrder reports whether a claim would have anything to write of the orders.
func settlesOrder(p *Policy, v View) bool {
	c := newClaiming(p, v)
	noteServed(&c.next.Record, v.Control.Requests)
	return c.claimOrdered()
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
			settle(r, store.Outcome{Tick: q.At.UTC(), Request: q.Name, Status: store.Missed, Reason: "no replica could run it in time"})
		case c.Missed != RunAll && !isBackfill(c.v.Record) && under(c.v.Record, q.At):
			settle(r, store.Outcome{Tick: q.At.UTC(), Request: q.Name, Status: store.Skipped, Reason: "overlap"})
		case c.next.Run || c.v.Claims == NoRun || unsettled(r) && !c.abandonInPause():
			return changed
		default:
			c.settleCancelled()
			c.claim(c.v.Now.UTC().Truncate(time.Millisecond), 1)
			r.Run.Request, r.Run.Order = q.Name, q.Seq
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
func settleCancelledOrder(r *store.Record, v View) bool {
	i := slices.IndexFunc(v.Control.Requests, func(q store.Request) bool { return q.Seq == r.Orders.Returned.Order })
	if i < 0 || r.Orders.IsServed(r.Orders.Returned.Order) || !cancelled(v) {
		return false
	}
	q := &v.Control.Requests[i]
	settleReturned(r, store.Outcome{Tick: q.At.UTC(), Request: q.Name, Attempt: 1}, v.end())
	serveEarly(&r.Orders, q.Seq)
	return true
}

// passedOver reports whether a run that was ordered has waited while a tick was run. Then it is
// the next, or a job that is always behind with its ticks would never run it.
func passedOver(v View) bool {
	q := waiting(v)
	return q != nil && v.Record.Run.Request == "" && q.At.Before(v.Record.Run.Claimed)
}

// under reports whether an order surely came during the last run. The time of an order is the
// earliest that it can have been, and the end of a run is the latest. The end of a run which has stalled and was not known to
// return is not known: its outcome has none, and Finished is when it was settled.
func under(r *store.Record, at time.Time) bool {
	const doubt = 2 * time.Second
	end := r.Run.Finished
	if r.Run.Status == store.Stalled {
		i := slices.IndexFunc(r.History, func(f store.Outcome) bool { return f.Status == store.Stalled && f.Start.Equal(r.Run.Claimed) })
		if i < 0 {
			return false
		}
		end = r.History[i].End
	}
	return at.After(r.Run.Claimed) && at.Add(doubt).Before(end)
}

// MayBeCancelled reports whether an order to cancel the run of the last claim may still come:
// that run has no outcome yet.
func MayBeCancelled(r *store.Record) bool {
	return unsettled(r) || leftBeside(r) || r.Orders.Returned != store.Returned{}
}

// end returns the order to end the run of the last claim, or what that claim was for; zero: there is none.
func (v *View) end() store.End { return v.Control.EndOf(v.Record.Token, AboutLast(v.Record)) }

// cancelled reports whether an operator has cancelled that.
func cancelled(v View) bool { return v.end().Cancel }

// AboutLast returns what the last claim was for. A manual run that was not ordered is known by its token alone.
func AboutLast(r *store.Record) (a store.About) {
	switch back := r.Orders.Returned; {
	case back.Order != 0 && !back.Tick.IsZero():
		return store.About{Tick: lastOpen(r, back.Tick), Order: back.Order, Attempt: r.Backfill.Attempt + 1}
	case back != store.Returned{}:
		return store.About{Tick: back.Tick, Order: back.Order, Attempt: 1}
	case r.Run.Request != "" && r.Run.Order == 0:
		return a
	case r.Run.Order != 0 && !isBackfill(r):
		return store.About{Order: r.Run.Order, Attempt: 1}
	}
	return store.About{Tick: lastOpen(r, r.Run.Tick), Order: r.Run.Order, Attempt: r.Run.Attempt}
}

// settleCancelled settles a tick whose claim was given up and cancelled, before a manual run is
// claimed: after that the order to cancel names a claim that the record does not show any more.
func (c *claiming) settleCancelled() {
	r := &c.next.Record
	tick := r.Orders.Returned.Tick
	if tick.IsZero() || tick.After(c.v.Now) || r.Definition.Spec != c.Spec || !cancelled(c.v) {
		return
	}
	if c.Follows() { // the claim has settled the ticks before it, and what it waited for need not be known any more
		if c.Ticks.Next(r.Watermark).Equal(tick) {
			settleReturned(r, store.Outcome{Tick: tick, Attempt: 1}, c.v.end())
		}
		return
	}
	view := c.v
	c.v.Now, c.v.Claims = tick, NoRun // ticks after it are left to the next claim
	c.claimDue()
	c.v = view
}

// settleReturned writes the outcome of a claim that was given up and cancelled.
func settleReturned(r *store.Record, f store.Outcome, end store.End) {
	f.Status, f.Reason, f.Token = store.Cancelled, CancelledBy(end), end.Token
	settle(r, f)
	r.Orders.Returned = store.Returned{}
}

// CancelledBy returns the reason of a run that an operator has cancelled.
func CancelledBy(e store.End) string {
	if e.Reason == "" {
		return "by " + e.By
	}
	return "by " + e.By + ": " + e.Reason
}

// claimBackfill claims the next tick of the backfill that is in force. The run before has been settled, and a changed definition
// is in force by now, so what waits of the backfill is looked at once more.
func (c *claiming) claimBackfill() (changed bool) {
	r := &c.next.Record
	if c.next.Run || unsettled(r) {
		return false
	}
	changed = c.settleLeftBackfilled()
	tick, attempt := c.nextBackfilled(r, c.v)
	if tick.IsZero() || c.v.Claims != AnyRun || c.Paused || c.PausedAt(c.v) || selfPaused(r, c.v.Control) {
		return changed
	}
	if c.writing().full() || !c.Follows() && c.Ticks.Last(c.v.Now).After(r.Watermark) { // a due tick comes first
		return changed
	}
	was, seq := r.Backfill, c.v.Control.Backfill.Seq
	c.claim(tick, attempt)
	r.Run.Request, r.Run.Order = store.BackfillRequest(seq), seq
	if was.Seq != seq {
		was = store.Backfilled{Seq: seq}
	}
	if c.v.Control.Backfill.Parallel > 1 {
		r.Backfill = was
		c.claimSeveral(r, &c.v.Control.Backfill)
		return true
	}
	r.Run.Deaths = was.Deaths
	was.Through, was.Attempt, was.Deaths = tick, 0, 0
	r.Backfill = was
	return true
}

// settleDeadBackfilled decides about the last run, one of a backfill whose runner is gone: its tick waits
// for another attempt, or has its outcome.
func (c *claiming) settleDeadBackfilled() bool {
	r := c.v.Record
	c.next.Record.Run.Deaths = deaths(r)
	end, isCancelled := endedBy(c.v)
	switch {
	case leftBeside(r): // it has stalled
	case isCancelled: // its runner may not have known
		c.next.Record.Run.Status = store.Cancelled
	default:
		c.next.Record.Run.Status = store.Abandoned
	}
	if Several(r) {
		again := !isCancelled && r.Definition.Spec == c.Spec && inForce(r, c.v, r.Run.Order)
		c.next.Backfilled = append(c.next.Backfilled, settleOpen(&c.next.Record, func(o *store.OpenTick) openFate {
			switch {
			case o.Token != r.Token:
				return openFate{again: true}
			case again && c.Interrupted.repeats(o.Attempt, o.Deaths+1):
				o.Deaths, o.Token = o.Deaths+1, -o.Token
				return openFate{again: true}
			case isCancelled:
				return openFate{status: store.Cancelled, reason: CancelledBy(end), token: r.Token}
			}
			return openFate{status: store.Abandoned, reason: endReason(c.v), token: r.Token}
		})...)
		return true
	}
	if isCancelled {
		c.tell(LastOutcome(r, store.Cancelled, CancelledBy(end)))
		return true
	}
	repeats := r.Definition.Spec == c.Spec && c.Interrupted.repeats(r.Run.Attempt, deaths(r))
	if repeats && r.Backfill.Seq == r.Run.Order && inForce(r, c.v, r.Run.Order) {
		waitAgain(&c.next.Record)
		return true
	}
	c.tell(LastOutcome(r, store.Abandoned, endReason(c.v)))
	return true
}

// endedBy returns by which order the last run, one of a backfill, is cancelled: that run, or all of the backfill.
func endedBy(v View) (by store.End, ok bool) {
	if cancelled(v) {
		return v.end(), true
	}
	return EndOfBackfill(v.Record.Run.Order, &v.Control.Backfill)
}

// EndOfBackfill returns by which order a backfill is cancelled; last is the last order. If that is another
// one, this one was cancelled before: else the other would have been refused. Who cancelled it the orders do not say any more.
func EndOfBackfill(seq int64, last *store.Backfill) (by store.End, ok bool) {
	if last.Seq > seq {
		return store.End{Seq: last.Seq, By: last.By, Reason: "another backfill was ordered"}, true
	}
	return last.Cancelled, last.Cancelled.Seq != 0 && last.Seq == seq
}

// settleLeftBackfilled settles the tick of a backfill that waits for a claim, and is not to have one: an
// operator has cancelled the claim of it that was given up, or the backfill, or the job repeats nothing any more, or does
// not have that tick any more. An order that is older than what the record says decides nothing.
func (c *claiming) settleLeftBackfilled() (changed bool) {
	r, b := &c.next.Record, &c.v.Control.Backfill
	fill, back := &r.Backfill, r.Orders.Returned
	f := store.Outcome{Tick: fill.Through, Request: store.BackfillRequest(fill.Seq), Status: store.Cancelled, Attempt: max(1, fill.Attempt)}
	switch waits := fill.Attempt > 0 && b.Seq >= fill.Seq; {
	case fill.Seq == 0 || c.Ticks == nil:
		return false
	case len(fill.Open) > 0:
		return c.settleLeftOpen()
	case back.Order == fill.Seq && cancelled(c.v):
		f.Tick, f.Reason, f.Token = back.Tick, CancelledBy(c.v.end()), r.Token
	case waits && b.Seq > fill.Seq:
		f.Reason = "another backfill was ordered"
	case waits && !b.On():
		f.Reason = CancelledBy(b.Cancelled)
	case waits && c.notBackfilled(r, fill.Through) != "":
		f.Status, f.Reason = store.Abandoned, c.notBackfilled(r, fill.Through)
	default:
		return false
	}
	fill.Through, fill.Attempt, fill.Deaths = f.Tick, 0, 0
	if back.Order == fill.Seq { // an order to cancel that claim would settle its tick again
		r.Orders.Returned = store.Returned{}
	}
	c.tell(f)
	return true
}

// notBackfilled returns why a tick of a backfill that waits gets no further attempt under the definition in force; empty: it gets one.
func (p *Policy) notBackfilled(r *store.Record, tick time.Time) string {
	switch {
	case r.Definition.Spec != p.Spec:
	case !p.Ticks.Last(tick).Equal(tick):
		return ScheduleChanged
	case p.Interrupted != Rerun:
		return "not run again"
	}
	return ""
}

// settleLeftOpen is settleLeftBackfilled for several ticks. A tick that has never begun has no outcome when its backfill is
// cancelled, or when the schedule does not have it any more, as those after the cursor have none.
func (c *claiming) settleLeftOpen() (changed bool) {
	r, b, n := &c.next.Record, &c.v.Control.Backfill, len(c.next.Record.Backfill.Open)
	seq, back := r.Backfill.Seq, r.Orders.Returned.Order == r.Backfill.Seq && cancelled(c.v)
	over := b.Seq > seq || b.Seq == seq && !b.On()
	told := settleOpen(r, func(o *store.OpenTick) openFate {
		why := c.notBackfilled(r, o.Tick)
		switch {
		case back && o.Token == r.Token:
			return openFate{status: store.Cancelled, reason: CancelledBy(c.v.end()), token: r.Token}
		case o.Attempt == 0 && (over || why == ScheduleChanged):
			return openFate{}
		case b.Seq > seq:
			return openFate{status: store.Cancelled, reason: "another backfill was ordered"}
		case over:
			return openFate{status: store.Cancelled, reason: CancelledBy(b.Cancelled)}
		case b.Seq == seq && o.Attempt > 0 && why != "":
			return openFate{status: store.Abandoned, reason: why}
		}
		return openFate{again: true}
	})
	waits := slices.ContainsFunc(r.Backfill.Open, func(o store.OpenTick) bool { return o.Token == r.Token })
	if changed = len(r.Backfill.Open) < n; changed && !waits && r.Orders.Returned.Order == seq {
		r.Orders.Returned = store.Returned{}
	}
	c.next.Backfilled = append(c.next.Backfilled, told...)
	return changed
}

// tell settles an outcome of a backfill with the claim.
func (c *claiming) tell(f store.Outcome) {
	settleBackfilled(&c.next.Record, f)
	c.next.Backfilled = append(c.next.Backfilled, f)
}

// Knows reports whether the record shows the run or the outcome of a request.
func Knows(r *store.Record, request string) bool {
	return r.Run.Request == request || slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Request == request })
}

// Served reports whether the request of a manual call was ordered and is served, and the record
// does not show its run any more: history keeps the last outcomes alone.
func Served(v View) bool {
	return !Knows(v.Record, v.Request) && slices.ContainsFunc(v.Control.Requests, func(q store.Request) bool {
		return q.Name == v.Request && v.Record.Orders.IsServed(q.Seq)
	})
}

// noteServed notes which of the requests that wait are served, as the record shows: a manual call has run them before their turn.
// The outcomes of those before them may push theirs out of history.
func noteServed(r *store.Record, requests []store.Request) {
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
func serve(o *store.Orders, order int64) {
	o.Served = order
	o.Early = slices.DeleteFunc(slices.Clone(o.Early), func(early int64) bool { return early <= order })
	if back := o.Returned; back.Tick.IsZero() && back.Order <= order { // nothing of that claim is left to cancel
		o.Returned = store.Returned{}
	}
}

// serveEarly notes that the request of an order has its run, and perhaps older ones have not.
func serveEarly(o *store.Orders, order int64) { o.Early = append(slices.Clone(o.Early), order) }

// unserve notes that the last claim does not serve its order after all: another replica does.
func unserve(o *store.Orders, order int64) {
	o.Served = min(o.Served, order-1)
	o.Early = slices.DeleteFunc(slices.Clone(o.Early), func(early int64) bool { return early == order })
}

// maxEarly is how many orders a record names at most that are served before their turn: each takes 17 bytes of it.
const maxEarly = 20

// BeforeTurn returns the run that has to be served before a manual call runs what was ordered after it, since the record names too
// many such orders; empty: there is none.
func BeforeTurn(v View) string {
	i := slices.IndexFunc(v.Control.Requests, func(q store.Request) bool { return !v.Record.Orders.IsServed(q.Seq) })
	if i < 0 || len(v.Record.Orders.Early) < maxEarly {
		return ""
	}
	later := func(q store.Request) bool { return q.Name == v.Request && !v.Record.Orders.IsServed(q.Seq) }
	if !slices.ContainsFunc(v.Control.Requests[i+1:], later) {
		return ""
	}
	return v.Control.Requests[i].Name
}

// serveByHand notes that a manual claim serves the request of that name, if it was ordered. Others may have been ordered before.
func serveByHand(claim *store.Record, v View) {
	for _, q := range v.Control.Requests {
		if q.Name == v.Request && !claim.Orders.IsServed(q.Seq) {
			claim.Run.Order = q.Seq
			serveEarly(&claim.Orders, q.Seq)
		}
	}
}
