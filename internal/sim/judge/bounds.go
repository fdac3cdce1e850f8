package judge

import (
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// ofFaults judges each fault of some kinds, or of all: what it has hit, the cluster meanwhile, and a while later.
func ofFaults(judge func(w *world, f *fault, bad report), kinds ...string) func(*world, report) {
	return func(w *world, bad report) {
		for _, f := range w.faults {
			if len(kinds) == 0 || slices.Contains(kinds, f.Op) {
				judge(w, f, bad)
			}
		}
	}
}

// ahead: a tick whose replica died before it is late by a lease at most: by the store's lease, until the tick was claimed.
func ahead(w *world, f *fault, bad report) {
	for _, t := range w.tasks {
		if late := t.Lease*4/3 + near + calls(4); t.name == f.Job {
			t.begins(f.Time, f.Tick.Add(late+2*time.Second), late, bad)
		}
	}
}

// overrun: a run that goes on without its lease is reported within a sixth of it.
func overrun(w *world, f *fault, bad report) {
	for _, hit := range f.hits {
		from, by := hit.r.Cancelled, hit.r.Cancelled.Add(hit.length()/6+noticed)
		if !slices.ContainsFunc(w.of[trace.Overran], func(o *trace.Event) bool {
			return o.Replica == f.Replica && o.Job == f.Job && !o.Time.Before(from) && !o.Time.After(by)
		}) {
			bad(by, "%s goes on since %s without its lease, and nothing ends its process", hit.r, clock(from))
		}
	}
}

// shutdown: a replica that is to stop acquires nothing, is gone soon after its grace, and leaves no lease.
func shutdown(w *world, f *fault, bad report) {
	stop, gone := w.stopping[f.Replica], w.left[f.Replica]
	if stop == nil {
		bad(f.Time, "%s is told to stop, and does not", f.Replica)
		return
	}
	if by := stop.End.Add(calls(4)); gone.IsZero() || gone.After(by) {
		bad(by, "%s is told to stop at %s, and is gone at %s", f.Replica, clock(stop.Time), clock(gone))
	}
	for _, e := range w.logs {
		for _, q := range e.requests {
			if q.Replica == f.Replica && q.Op == "acquire" && q.Sent.After(stop.Time.Add(slack)) {
				bad(q.Sent, "%s acquires %s, and is to stop since %s", f.Replica, e.name, clock(stop.Time))
			}
		}
		for _, t := range slices.Concat(slices.Collect(maps.Values(e.termsBy))...) {
			if t.replica == f.Replica && t.from.Before(gone) && t.to.After(gone.Add(slack)) {
				bad(gone, "%s is gone, and has left the lease of %s", f.Replica, e.name)
			}
		}
	}
}

const mostInASecond = 20 // requests of a replica for one job

// outage: while the store does not answer, calls are given up in time, are few, and a renewal is sent again soon.
func outage(w *world, f *fault, bad report) {
	for _, t := range w.tasks {
		sent := by[string, *trace.Event]{}
		for _, q := range t.requests {
			if q.Cause != "" && !q.Sent.Before(f.Time) && q.Sent.Before(f.End) {
				f.patient(t.Lease, q, sent[q.Replica], bad)
				sent.add(q.Replica, q)
			}
		}
	}
}

// patient judges a call that failed, after others of its replica for the same job.
func (f *fault) patient(lease time.Duration, q *trace.Event, before []*trace.Event, bad report) {
	if longest := max(lease/6, 2500*time.Millisecond); q.Done.Sub(q.Sent) > longest+slack {
		bad(q.Sent, "%s waits %s for its %s of %s", q.Replica, q.Done.Sub(q.Sent), q.Op, q.Job)
	}
	if i := len(before) - mostInASecond; i >= 0 && q.Sent.Sub(before[i].Sent) < time.Second {
		bad(q.Sent, "%s sends more than %d requests for %s in a second", q.Replica, mostInASecond, q.Job)
	}
	for _, b := range slices.Backward(before) {
		if b.Op == "renew" && q.Op == "renew" && b.Lease == q.Lease {
			late := b.Sent.After(f.Time.Add(lease * 2 / 5)) // one was due by then
			if pause := q.Sent.Sub(b.Done); late && pause > lease/10+slack {
				bad(q.Sent, "%s renews the lease of %s again %s after a failure", q.Replica, q.Job, pause)
			}
			return
		}
	}
}

// denied: a replica that may not write has no ticks missed except those that came due before it gave up what it ran.
func denied(w *world, f *fault, bad report) {
	held := map[string]time.Time{}
	for _, hit := range f.hits {
		held[hit.e.name] = hit.r.End.Add(5*hit.length() + hit.takeOver())
	}
	for _, e := range w.logs {
		for _, o := range e.outcomes {
			if o.Status == event.Missed && o.Tick.After(f.Time) && o.Tick.After(held[e.name]) && o.write.Time.Before(f.until) {
				bad(o.write.Time, "%s, and %s alone may not write", o, f.Replica)
			}
		}
	}
}

// takenBack: once the replica of an aborted deploy is gone, others take what it has written back within minutes: the record has
// their definition again, and not only a mark that asks whether it may.
func takenBack(_ *world, f *fault, bad report) {
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
		bad(by, "the replica of an aborted deploy is gone since %s, and no other takes %s back", clock(f.End), f.Job)
	}
}

// overdue: from the first fault on, nothing is claimed after its starting deadline, and what was claimed begins within five
// sixths of its lease.
func overdue(w *world, r *run) bool {
	if len(w.faults) == 0 || !r.isTick() || r.Time.Before(w.faults[0].Time) {
		return false
	}
	d, begins := r.d.Late.Start, later(r.claim.Time, r.Tick).Add(r.d.Lease*5/6)
	return d > 0 && r.claim.Time.After(r.Tick.Add(d+time.Second+roundTrip)) || r.Try == 1 && r.Time.After(begins)
}

// recovered: a while after a fault, until the next one, each tick begins in time and each singleton runs. The while is two of the
// longest leases, a look, and calls.
func recovered(w *world, f *fault, bad report) {
	from := later(f.Time, f.End).Add(90 * time.Second)
	if f.Op == trace.AbortOther {
		from = from.Add(trace.Patience)
	}
	for _, t := range w.tasks {
		switch {
		case f.Op == trace.KillAll: // an alarm brings a replica up
		case t.Every > 0:
			t.begins(from, f.until, starts, bad)
		case !t.runsAt(f.until, 10*time.Second):
			bad(f.until, "%s does not run after %q at %s", t.name, f.Op, clock(f.Time))
		}
	}
}

// awoken: when all replicas of a cluster that scales to zero are gone, an alarm brings one up before each tick, by its lead; the
// first one perhaps only when the message is no longer hidden that a dead one had taken.
func awoken(w *world, f *fault, bad report) {
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
				bad(by, "all replicas were killed, and tick %s of %s has not begun", clock(tick), t.name)
			}
		}
	}
}
