package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// ofAll is what is promised of the cluster while it meets a single fault, and after it. A pause is judged by S9.
var ofAll = map[string]func(*world, *fault){
	trace.KillAhead:  (*world).failoverAhead,
	trace.KillAll:    (*world).awoken,
	trace.Terminate:  (*world).shutdown,
	trace.TermAhead:  (*world).shutdown,
	trace.CutOne:     (*world).outage,
	trace.CutAll:     (*world).outage,
	trace.DenyOne:    (*world).denied,
	trace.AbortOther: (*world).takenBack,
}

// begun reports whether a run that is meant has begun by a time.
func (e *entryLog) begun(by time.Time, meant func(r *run) bool) bool {
	return slices.ContainsFunc(e.runs, func(r *run) bool { return meant(r) && !r.Time.After(by) })
}

// failoverAhead: a tick whose replica died before it is late by a lease at most: that of the store, until it was claimed.
func (w *world) failoverAhead(f *fault) {
	by := f.Tick.Add(f.d.Lease + f.d.Lease/3 + 300*time.Millisecond + calls(4))
	if !f.e.begun(by, func(r *run) bool { return !r.Tick.Before(f.Tick) }) &&
		!slices.ContainsFunc(f.e.outcomes, func(t outcome) bool { return !t.Tick.Before(f.Tick) && !t.write.Time.After(by) }) {
		w.bad("P failover", by, "%s dies just before tick %s of %s, which does not begin", f.Replica, clock(f.Tick), f.Job)
	}
}

// shutdown: a replica that is to stop acquires nothing, is gone soon after its grace, and leaves no lease.
func (w *world) shutdown(f *fault) {
	stop, gone := w.stopping[f.Replica], w.left[f.Replica]
	if stop == nil {
		w.bad("P shutdown", f.Time, "%s is told to stop, and does not", f.Replica)
		return
	}
	if by := stop.End.Add(calls(4)); gone.IsZero() || gone.After(by) {
		w.bad("P shutdown", by, "%s is told to stop at %s, and is gone at %s", f.Replica, clock(stop.Time), clock(gone))
	}
	for _, e := range w.logs {
		for _, q := range e.requests {
			if q.Replica == f.Replica && q.Op == "acquire" && q.Sent.After(stop.Time.Add(slack)) {
				w.bad("P shutdown", q.Sent, "%s acquires %s, and is to stop since %s", f.Replica, e.name, clock(stop.Time))
			}
		}
		for _, all := range e.termsBy {
			for _, t := range all {
				if t.replica == f.Replica && t.from.Before(gone) && t.to.After(gone.Add(slack)) {
					w.bad("P shutdown", gone, "%s is gone, and has left the lease of %s", f.Replica, e.name)
				}
			}
		}
	}
}

const mostInASecond = 20 // requests of a replica for one job

// outage: while the store does not answer, calls are given up in time, are few, and a renewal is sent again soon.
func (w *world) outage(f *fault) {
	for _, t := range w.tasks {
		sent := by[string, *trace.Event]{}
		for _, q := range t.requests {
			if q.Cause != "" && !q.Sent.Before(f.Time) && q.Sent.Before(f.End) {
				sent.add(q.Replica, q)
			}
		}
		for _, all := range sent {
			for i, q := range all {
				w.patient(f, t.Lease, q, all[:i])
			}
		}
	}
}

// patient judges a call that failed, after others of its replica for the same job.
func (w *world) patient(f *fault, lease time.Duration, q *trace.Event, before []*trace.Event) {
	if longest := max(lease/6, 2500*time.Millisecond); q.Done.Sub(q.Sent) > longest+slack {
		w.bad("P outage", q.Sent, "%s waits %s for its %s of %s", q.Replica, q.Done.Sub(q.Sent), q.Op, q.Job)
	}
	if i := len(before) - mostInASecond; i >= 0 && q.Sent.Sub(before[i].Sent) < time.Second {
		w.bad("P outage", q.Sent, "%s sends more than %d requests for %s in a second", q.Replica, mostInASecond, q.Job)
	}
	for _, b := range slices.Backward(before) {
		if b.Op == "renew" && q.Op == "renew" && b.Lease == q.Lease {
			late := b.Sent.After(f.Time.Add(lease * 2 / 5)) // one was due by then
			if pause := q.Sent.Sub(b.Done); late && pause > lease/10+slack {
				w.bad("P outage", q.Sent, "%s renews the lease of %s again %s after a failure", q.Replica, q.Job, pause)
			}
			return
		}
	}
}

// denied: who may not write costs no tick beside those that came due before it gave up what it ran.
func (w *world) denied(f *fault) {
	held := map[string]time.Time{}
	for _, hit := range w.hits(f) {
		held[hit.e.name] = hit.r.End.Add(5*hit.length() + hit.takeOver())
	}
	for _, e := range w.logs {
		for _, t := range e.outcomes {
			if t.Status == store.Missed && t.Tick.After(f.Time) && t.Tick.After(held[e.name]) && t.write.Time.Before(f.until) {
				w.bad("P denied", t.write.Time, "%s, and %s alone may not write", t, f.Replica)
			}
		}
	}
}

// takenBack: once the replica of an aborted deploy is gone, others take what it has written back within minutes: the record has
// their definition again, and not only a mark that asks whether it may.
func (w *world) takenBack(f *fault) {
	by, other := f.End.Add(trace.Patience), ""
	for _, q := range f.e.writes {
		switch {
		case q.Record == nil || q.Time.After(by):
		case q.d != nil && q.d.Every != f.d.Every:
			other = q.Record.Definition.Spec
		case q.Record.Definition.Spec != other:
			other = ""
		}
	}
	if other != "" {
		w.bad("P deploy", by, "the replica of an aborted deploy is gone since %s, and no other takes %s back", clock(f.End), f.Job)
	}
}

// deadlines: from the first fault on, nothing is claimed after its starting deadline, and what was claimed begins within five
// sixths of its lease.
func (w *world) deadlines(from time.Time) {
	for _, r := range w.runs {
		if !r.isTick() || r.Time.Before(from) {
			continue
		}
		if d := r.d.StartingDeadline; d > 0 && r.claim.Time.After(r.Tick.Add(d+time.Second+roundTrip)) {
			w.bad("P deadline", r.claim.Time, "%s after its starting deadline", r.claim)
		}
		if by := later(r.claim.Time, r.Tick).Add(r.d.Lease * 5 / 6); r.Try == 1 && r.Time.After(by) {
			w.bad("P deadline", r.Time, "%s long after its claim", r)
		}
	}
}

// recovered: a while after a fault, until the next one, each tick begins in time and each singleton runs.
func (w *world) recovered(f *fault) {
	from := later(f.Time, f.End).Add(recovers)
	if f.Op == trace.AbortOther {
		from = from.Add(trace.Patience)
	}
	for _, t := range w.tasks {
		if t.Every > 0 {
			t.begins(from, f.until, starts, w.report("P1 in time"))
		} else if !t.runsAt(f.until, 10*time.Second) {
			w.bad("P recovered", f.until, "%s does not run after %q at %s", t.name, f.Op, clock(f.Time))
		}
	}
}

// awoken: when all replicas of a cluster that scales to zero are gone, an alarm brings one up before each tick, by its lead; the
// first one perhaps only when the message is no longer hidden that a dead one had taken.
func (w *world) awoken(f *fault) {
	z := w.Zero
	up := z.Poll + z.Start // after a message is visible
	if z.Kind == trace.AsApp {
		up += 5 * time.Minute // a platform waits so long at most until it restarts a process that has ended
	}
	soon := starts + calls(4)
	for _, t := range w.tasks {
		for tick := t.After(f.Time); t.Follows == "" && tick.Add(up+soon).Before(f.until); tick = t.After(tick) {
			by := later(tick.Add(max(0, up-z.Lead)), f.Time.Add(z.Hold+up)).Add(soon)
			if !t.begun(by, func(r *run) bool { return !r.Tick.Before(tick) }) {
				w.bad("P alarm", by, "all replicas were killed, and tick %s of %s has not begun", clock(tick), t.name)
			}
		}
	}
}
