package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Ordered reports whether a run by hand was ordered that waits for a claim.
func (p *Policy) Ordered(v View) bool {
	waits := slices.ContainsFunc(v.Control.Requests, func(q store.Request) bool { return q.Seq > v.Record.Orders.Served })
	if !waits || p.Ticks == nil || p.Outdated(v) {
		return false
	}
	next := Claim{Record: v.Record.Clone()}
	return p.claimOrdered(&next, v)
}

// claimOrdered claims the oldest run by hand that was ordered and not served. It settles
// requests that cannot be run any more, and those that were made while the job was running:
// they are skipped, as a tick is, unless the job makes up for all its ticks.
func (p *Policy) claimOrdered(next *Claim, v View) (changed bool) {
	r := &next.Record
	for _, q := range v.Control.Requests {
		switch {
		case q.Seq <= r.Orders.Served:
			continue
		case knows(r, q.Name):
			// RunNow has run it
		case v.Now.After(q.Until):
			settle(r, store.Outcome{Tick: q.At.UTC(), Request: q.Name, Status: store.Missed, Reason: "no replica could run it in time"})
		case p.Missed != RunAll && under(v.Record, q.At):
			settle(r, store.Outcome{Tick: q.At.UTC(), Request: q.Name, Status: store.Skipped, Reason: "overlap"})
		case !next.Run && r.Orders.Returned.Order == q.Seq && cancelled(v):
			settleReturned(r, store.Outcome{Tick: q.At.UTC(), Request: q.Name, Attempt: 1}, v.Control.End)
		case next.Run || v.SettleOnly || unsettled(r):
			return changed
		default:
			p.settleCancelled(next, v)
			p.claim(next, v, v.Now.UTC().Truncate(time.Millisecond), 1)
			r.Run.Request, r.Run.Order, r.Orders.Served = q.Name, q.Seq, q.Seq
			return true
		}
		r.Orders.Served, changed = q.Seq, true
	}
	return changed
}

// knows reports whether the record shows the run or the outcome of a request.
func knows(r *store.Record, request string) bool {
	return r.Run.Request == request || slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Request == request })
}

// Served reports whether the request of a call by hand was ordered and is served, and the record
// does not show its run any more: history keeps the last outcomes alone.
func Served(v View) bool {
	return !knows(v.Record, v.Request) && slices.ContainsFunc(v.Control.Requests, func(q store.Request) bool {
		return q.Name == v.Request && q.Seq <= v.Record.Orders.Served
	})
}

// serveByHand notes that a claim by hand serves the request of that name, if it was ordered and
// is the next, and that those before it are served which were run by hand too. Once history has
// forgotten their outcomes, nothing else would keep a replica from running them as ordered.
func serveByHand(claim *store.Record, v View) {
	for _, q := range v.Control.Requests {
		switch {
		case q.Seq <= claim.Orders.Served:
		case q.Name == v.Request:
			claim.Run.Order, claim.Orders.Served = q.Seq, q.Seq
			return
		case knows(claim, q.Name):
			claim.Orders.Served = q.Seq
		default:
			return
		}
	}
}

// passedOver reports whether a run that was ordered has waited while a tick was run. Then it is
// the next, or a job that is always behind with its ticks would never run it.
func passedOver(v View) bool {
	for _, q := range v.Control.Requests {
		if q.Seq > v.Record.Orders.Served {
			return v.Record.Run.Request == "" && q.At.Before(v.Record.Run.Claimed)
		}
	}
	return false
}

// under reports whether an order surely came during the last run. The time of an order is the
// earliest that it can have been, and the end of a run is the latest.
func under(r *store.Record, at time.Time) bool {
	const doubt = 2 * time.Second
	return at.After(r.Run.Claimed) && at.Add(doubt).Before(r.Run.Finished)
}

// MayBeCancelled reports whether an order to cancel the run of the last claim may still come:
// that run has no outcome yet.
func MayBeCancelled(r *store.Record) bool {
	return unsettled(r) || r.Orders.Returned != store.Returned{}
}

// cancelled reports whether an operator has cancelled the run of the last claim.
func cancelled(v View) bool {
	return v.Control.End.Cancel && v.Control.End.Token == v.Record.Token
}

// settleCancelled settles a tick whose claim was given up and cancelled, before a run by hand is
// claimed: after that the order to cancel names a claim that the record does not show any more.
func (p *Policy) settleCancelled(next *Claim, v View) {
	r := &next.Record
	tick := r.Orders.Returned.Tick
	if tick.IsZero() || tick.After(v.Now) || r.Definition.Spec != p.Spec || !cancelled(v) {
		return
	}
	if p.Follows() { // the claim has settled the ticks before it, and what it waited for need not be known any more
		if p.Ticks.Next(r.Watermark).Equal(tick) {
			settleReturned(r, store.Outcome{Tick: tick, Attempt: 1}, v.Control.End)
		}
		return
	}
	v.Now, v.SettleOnly = tick, true // ticks after it are left to the next claim
	p.claimDue(next, v)
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
