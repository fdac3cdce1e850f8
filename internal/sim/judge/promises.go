package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// Promises are judged where a settled cluster meets one thing at a time. The program did not keep them at first, or does not yet.
var promises = []property{
	{"S5 backfilled", backfilled},
	{"S8 history", ofRuns(kept, "and the history does not have it")},
	{"S8 obeyed", obeyed}, {"S9 name", names},
	{"L1 woken", woken}, {"L1 wanted", wanted}, {"L1 called", called}, {"L1 swept", swept},
}

// backfilled: a tick that is claimed for a backfill is one of the definition of who claims it.
func backfilled(w *world, bad report) {
	for _, c := range w.claims {
		run := &c.Record.Run
		if c.d != nil && c.d.Every > 0 && store.BackfillOf(run.Request) != 0 && !c.d.Last(run.Tick).Equal(run.Tick) {
			bad(c.Time, "%s, which is no tick of it", c)
		}
	}
}

// kept: where replicas keep a history, it has each run of a backfill that has returned, some minutes later.
func kept(w *world, r *run) bool {
	lines := w.of[trace.Kept]
	has := func(k *trace.Event) bool { return k.Job == r.e.name && k.Request == r.Request && k.Tick.Equal(r.Tick) }
	due := len(lines) > 0 && store.BackfillOf(r.Request) != 0 && !r.goesOn(lines[0].Time.Add(-10*time.Minute-1))
	return due && !slices.ContainsFunc(lines, has)
}

// obeyed: an order that was confirmed is obeyed. A run begins within seconds; where its job runs then, it begins later or has an
// outcome. What was cancelled lives no longer than some seconds, in whichever attempt.
func obeyed(w *world, bad report) {
	for _, o := range w.of[trace.Ordered] {
		e, by := w.entries[o.Job], o.Heard.Add(binds)
		switch {
		case e == nil || o.Heard.IsZero():
		case o.Op == string(store.OrderRun) && !e.obeys(o, by.Add(calls(3))):
			bad(by, "%s of %s was ordered at %s, and has not begun, or has no outcome", o.Request, e.name, clock(o.Heard))
		case o.Op == string(store.OrderCancel):
			for _, r := range e.runs {
				was := func(c *claim) bool { return r.Tick.Equal(c.Record.Run.Tick) }
				if r.isTick() && slices.ContainsFunc(e.claimsBy[o.Token], was) && r.lives(by, w.end()) {
					bad(by, "%s attempt %d, and was cancelled at %s", r, r.Attempt, clock(o.Heard))
				}
			}
		}
	}
}

// obeys reports whether a run begins as ordered.
func (e *entryLog) obeys(o *trace.Event, by time.Time) bool {
	busy, begins := false, time.Time{}
	for _, r := range e.runs {
		if r.Request == o.Request {
			begins = first(begins, r.Time)
		} else {
			busy = busy || r.Time.Before(by) && r.goesOn(o.Time)
		}
	}
	return !begins.IsZero() && (busy || begins.Before(by)) || busy && e.answered(o.Request)
}

// names: a name of a run that was ordered is taken once within a day.
func names(w *world, bad report) {
	for i, o := range w.of[trace.Ordered] {
		runs := o.Op == string(store.OrderRun) && !o.Heard.IsZero()
		if runs && slices.ContainsFunc(w.of[trace.Ordered][:i], func(b *trace.Event) bool {
			known := !b.Heard.IsZero() && o.Time.Before(b.Heard.Add(24*time.Hour))
			return known && b.Op == o.Op && b.Job == o.Job && b.Request == o.Request
		}) {
			bad(o.Heard, "%s of %s was ordered before, and is again", o.Request, o.Job)
		}
	}
}

// woken: a process that is woken up for a tick runs it, or another one has.
func woken(w *world, bad report) {
	for _, c := range w.of[trace.Woken] {
		e, d := w.entries[c.Job], w.definition(c.Replica, c.Job)
		if e != nil && d != nil && !d.EveryReplica && !c.Tick.IsZero() && !c.End.IsZero() &&
			!e.begun(c.End, func(r *run) bool { return r.Tick.Equal(c.Tick) && r.Request == "" }) {
			bad(c.End, "%s was woken up for tick %s of %s, and no replica has begun it", c.Replica, clock(c.Tick), c.Job)
		}
	}
}

// wanted: who is woken up before a replica is wanted finds nothing to do, unless something was ordered since that was said.
func wanted(w *world, bad report) {
	for _, n := range w.of[trace.Wanted] {
		until := n.End.Add(-slack)
		for _, o := range slices.Concat(w.of[trace.Wanted], w.of[trace.Ordered]) {
			if o.Time.After(n.Time) {
				until = first(until, o.Time)
			}
		}
		for _, r := range w.runs {
			if r.Time.After(n.Time) && r.Time.Before(until) {
				bad(r.Time, "%s and at %s no replica was wanted before %s", r, clock(n.Time), clock(n.End))
			}
		}
	}
}

// called: calls that are shorter than a lease get on, too: one of them goes on with a run whose lease was ended.
func called(w *world, bad report) {
	for _, s := range w.of[trace.Single] {
		if s.Op == trace.ShortCalls && !slices.ContainsFunc(w.entries[s.Job].writes, func(q *write) bool {
			return q.Time.After(s.Time) && q.Replica != trace.Operator && (q.Op == "claim" || q.Op == "settle")
		}) {
			bad(s.End, "calls of less than a lease each, from %s to %s, do not go on with %s", clock(s.Time), clock(s.End), s.Job)
		}
	}
}

// swept: after a slot was removed that no replica used, the jobs of its group begin in time.
func swept(w *world, bad report) {
	for _, s := range w.of[trace.Swept] {
		for _, t := range w.tasks {
			if t.Group != "" {
				t.begins(s.Time, w.end(), starts, bad)
			}
		}
	}
}
