package check

import (
	"slices"
	"time"
)

// longestHeld is for how long an outcome waits for the starts of other runs at most.
const longestHeld = 1100 * time.Millisecond

// prompt: the outcome of a run that has succeeded is sent soon after its function has returned.
// It waits for a moment for other runs that are about to start, and for a health check or a call
// of the same job that is under way, or was hit by a fault. A failure may wait for another try,
// and a run whose context has ended for what that does.
func prompt(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, claim := range l.claimed(job) {
			t := l.termOf(job, claim.Record.Token)
			if t == nil || t.last() == nil || t.last().End.IsZero() || t.last().Note != "" || !t.last().Cancelled.IsZero() {
				continue
			}
			r := t.last()
			sent := l.firstSent(claim, r.End)
			if sent == nil || sent.Sent.Sub(r.End) <= longestHeld || l.frozen(r.Replica, r.End, sent.Sent) != nil {
				continue
			}
			busy := func(e *Event) bool {
				of := e != sent && e.Op != "renew" && e.Replica == r.Replica && !e.began().Before(r.Time) && e.began().Before(sent.Sent)
				return of && (overAt(e).After(r.End) || e.Cause != "")
			}
			if !slices.ContainsFunc(l.of(job, Request), busy) && !slices.ContainsFunc(l.of(job, Asked), busy) {
				bad(sent.Sent, "%s has returned, and its outcome is sent %s later", r.name(), sent.Sent.Sub(r.End))
			}
		}
	}
}

// firstSent returns the first request by which the claimer of a run that has returned then tries
// to write the outcome: it reads first if the answer to its last write was lost. Nil: there is
// none.
func (l *Log) firstSent(claim *Event, then time.Time) (first *Event) {
	unclear := slices.ContainsFunc(l.under(claim), func(e *Event) bool {
		return e.Sent.Before(then) && (!e.OK() || e.Cause != "" || e.Heard.IsZero())
	})
	for _, e := range between(l.of(claim.Job, Request), then, forever) {
		reads := unclear && e.Op == "read" && e.Replica == claim.Replica && e.Sent.Before(then.Add(longestHeld))
		finishes := e.Op == "finish" && e.Lease == claim.Lease && e.Record != nil && e.Record.Token == claim.Record.Token
		if (reads || finishes) && !e.Sent.Before(then) && (first == nil || e.Sent.Before(first.Sent)) { // one may be applied late
			first = e
		}
	}
	return first
}

// under returns the requests under the lease of a claim, as long as its run is the last one.
func (l *Log) under(claim *Event) (all []*Event) {
	for e := range l.leased(claim) {
		if e.Writes() && (e.Record == nil || e.Record.Token == claim.Record.Token) {
			all = append(all, e)
		}
	}
	return all
}

// began returns when a call was sent.
func (e *Event) began() time.Time {
	if e.What == Request {
		return e.Sent
	}
	return e.Time
}

// overAt returns when a call has ended; the end of all time: it is not known to have.
func overAt(e *Event) time.Time {
	switch {
	case e.What == Request && !later(e.Done, e.Heard).IsZero():
		return later(e.Done, e.Heard)
	case e.What != Request && !e.End.IsZero():
		return e.End
	}
	return time.Unix(1<<40, 0)
}
