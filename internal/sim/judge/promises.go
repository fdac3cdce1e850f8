package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Promises are judged where a settled cluster meets one thing at a time. A pause is judged by S9.
var promises = []property{
	{"S8 history", ofRuns(kept, "and the history does not have it")}, {"S8 obeyed", obeyed},
	{"L1 woken", woken}, {"L1 wanted", wanted},
	{"P hit", ofFaults(hitNone)}, {"P ends", ofFaults(ends)}, {"P goes on", ofFaults(goesOn)},
	{"P ahead", ofFaults(ahead, trace.KillAhead)},
	{"P overrun", ofFaults(overrun, trace.UnlockDeaf, trace.StallDeaf)},
	{"P shutdown", ofFaults(shutdown, trace.Terminate, trace.TermAhead)},
	{"P outage", ofFaults(outage, trace.CutOne, trace.CutAll)},
	{"P denied", ofFaults(denied, trace.DenyOne)},
	{"P deploy", ofFaults(takenBack, trace.AbortOther)},
	{"P deadline", ofRuns(overdue, "and was claimed after its starting deadline, or long before")},
	{"P recovered", ofFaults(recovered)},
	{"P alarm", ofFaults(awoken, trace.KillAll)},
}

// kept: where replicas keep a history, it has each run of a backfill that has returned, some minutes later.
func kept(w *world, r *run) bool {
	lines := w.of[trace.Kept]
	has := func(k *trace.Event) bool { return k.Job == r.e.name && k.Request == r.Request && k.Tick.Equal(r.Tick) }
	due := len(lines) > 0 && event.BackfillOf(r.Request) != 0 && !r.goesOn(lines[0].Time.Add(-10*time.Minute-1))
	return due && !slices.ContainsFunc(lines, has)
}

// obeyed: an order that was confirmed is obeyed. A run begins within seconds; where its job runs then, it begins later or has an
// outcome. What was cancelled lives no longer than some seconds, in whichever attempt.
func obeyed(w *world, bad report) {
	for _, o := range w.of[trace.Ordered] {
		e, by := w.entries[o.Job], o.Heard.Add(binds)
		switch {
		case e == nil || o.Heard.IsZero():
		case o.Op == string(soloist.OrderRun) && !e.obeys(o, by.Add(calls(3))):
			bad(by, "%s of %s was ordered at %s, and has not begun, or has no outcome", o.Request, e.name, clock(o.Heard))
		case o.Op == string(soloist.OrderCancel):
			for _, r := range e.runs {
				was := func(c *claim) bool { return r.claim == c || r.isTick() && r.Tick.Equal(c.Record.Run.Tick) }
				if slices.ContainsFunc(e.claimsBy[o.Token], was) && r.lives(by, w.end()) {
					bad(by, "%s attempt %d, and was cancelled at %s", r, r.Attempt, clock(o.Heard))
				}
			}
		}
	}
}

// obeys reports whether a run begins as ordered, after that.
func (e *entryLog) obeys(o *trace.Event, by time.Time) bool {
	busy, begins := false, time.Time{}
	for _, r := range e.runs {
		if r.Request == o.Request && !r.Time.Before(o.Time) {
			begins = first(begins, r.Time)
		} else {
			busy = busy || r.Time.Before(by) && r.goesOn(o.Time)
		}
	}
	return !begins.IsZero() && (busy || begins.Before(by)) || busy && e.answered(o.Request)
}

// woken: a process that is woken up for a tick runs it, or another one has.
func woken(w *world, bad report) {
	for _, c := range w.of[trace.Woken] {
		if e := w.entries[c.Job]; e != nil && !c.Tick.IsZero() && !e.begun(c.End, func(r *run) bool {
			return r.Tick.Equal(c.Tick) && r.Request == ""
		}) {
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
