package plan

import (
	"slices"

	"github.com/soloist-go/soloist/store"
)

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
