package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// What is promised of single faults: each bound is one comparison.

// failover: who is gone is replaced when its lease is over.
func (w *world) failover(f *fault) {
	w.goesOn(f, "P failover", f.Time.Add(f.length()), f.takeOver())
}

// failoverAhead: a tick whose replica died before it is late by a lease at most: that of the store, until it was claimed.
func (w *world) failoverAhead(f *fault) {
	by := f.Tick.Add(f.d.Lease + f.d.Lease/3 + 300*time.Millisecond + calls(4))
	if !slices.ContainsFunc(f.e.runs, func(r *run) bool { return !r.Tick.Before(f.Tick) && !r.Time.After(by) }) &&
		!slices.ContainsFunc(f.e.outcomes, func(t outcome) bool { return !t.Tick.Before(f.Tick) && !t.write.Time.After(by) }) {
		w.bad("P failover", by, "%s dies at %s, just before tick %s of %s, and nobody has begun it", f.Replica, clock(f.Time), clock(f.Tick), f.Job)
	}
}

// thaw: a machine that was suspended knows that within a second.
func (w *world) thaw(f *fault) { w.ends(f, "P thaw", f.End.Add(noticed)) }

// cutShort: who cannot renew ends its run a sixth of the lease before that is over.
func (w *world) cutShort(f *fault) { w.ends(f, "P cut short", f.Time.Add(f.length()*5/6)) }

// revoked: the holder notices the end of its lease at its next renewal.
func (w *world) revoked(f *fault) { w.ends(f, "P revoked", f.Heard.Add(f.length()/3+calls(1))) }

// unlocked: another run begins after a hold-off, which is a lease, once the lease is over.
func (w *world) unlocked(f *fault) {
	free := f.Heard
	if f.Op == trace.Unlock {
		free = free.Add(f.length())
	}
	w.goesOn(f, "P unlock", free.Add(f.length()), f.look()+f.takeOver())
}

// overrun: a run that goes on without its lease is reported within a sixth of it.
func (w *world) overrun(f *fault) {
	from, by := f.r.Cancelled, f.r.Cancelled.Add(f.length()/6+noticed)
	if !slices.ContainsFunc(w.of[trace.Overran], func(o *trace.Event) bool {
		return o.Replica == f.Replica && o.Job == f.Job && !o.Time.Before(from) && !o.Time.After(by)
	}) {
		w.bad("P overrun", by, "%s of %s goes on since %s without its lease, and nobody ends its process", f.Replica, f.Job, clock(from))
	}
}

// stalled: the context of a silent run ends at the next check after its time.
func (w *world) stalled(f *fault) {
	w.ends(f, "P stall", later(f.r.Beat, f.r.Time).Add(f.d.HeartbeatTimeout+time.Second))
}

// replaced: others are near when a run stalls, and go on when it has returned.
func (w *world) replaced(f *fault) {
	w.goesOn(f, "P replaced", f.r.End, 300*time.Millisecond+calls(3))
}

// replacedLate: a run that stalls and does not return is replaced when its lease is over.
func (w *world) replacedLate(f *fault) {
	w.goesOn(f, "P replaced", f.r.Cancelled.Add(f.length()), f.takeOver())
}

// goneOver: others go on when a run has ended that was handed over.
func (w *world) goneOver(f *fault) {
	w.goesOn(f, "P handed over", f.r.End, f.look()+calls(2))
}

// stopped: a run ends within the grace of its replica; a singleton when others had the time to come near.
func (w *world) stopped(f *fault) {
	i := slices.IndexFunc(w.of[trace.Stop], func(s *trace.Event) bool { return s.Replica == f.Replica })
	by := w.of[trace.Stop][i].End
	if near := f.Time.Add(f.length()/3 + time.Second); f.d != nil && f.d.Every == 0 && near.Before(by) {
		by = near
	}
	w.ends(f, "P shutdown", by.Add(slack))
}

// shutdown: a replica that is to stop acquires nothing, is gone soon after its grace, and leaves no lease.
func (w *world) shutdown(f *fault) {
	i := slices.IndexFunc(w.of[trace.Stop], func(s *trace.Event) bool { return s.Replica == f.Replica })
	if i < 0 {
		w.bad("P shutdown", f.Time, "%s is told to stop, and does not", f.Replica)
		return
	}
	stop, gone := w.of[trace.Stop][i], w.gone(f.Replica)
	if by := stop.End.Add(calls(4)); gone.IsZero() || gone.After(by) {
		w.bad("P shutdown", by, "%s is told to stop at %s, and is gone at %s", f.Replica, clock(stop.Time), clock(gone))
	}
	for _, name := range w.names {
		for _, q := range w.entries[name].requests {
			if q.Replica == f.Replica && q.Op == "acquire" && q.Sent.After(stop.Time.Add(slack)) {
				w.bad("P shutdown", q.Sent, "%s acquires %s, and is to stop since %s", f.Replica, name, clock(stop.Time))
			}
		}
		for _, t := range w.entries[name].terms {
			if w.holderOf(w.entries[name], t) == f.Replica && t.from.Before(gone) && t.to.After(gone.Add(slack)) {
				w.bad("P shutdown", gone, "%s is gone, and has left the lease of %s", f.Replica, name)
			}
		}
	}
}

// holderOf is the replica that acquired a lease.
func (w *world) holderOf(e *entryLog, t *term) string {
	for _, q := range e.requests {
		if q.Op == "acquire" && q.Lease == t.id && q.OK() {
			return q.Replica
		}
	}
	return ""
}

// outage: while the store does not answer, calls are given up in time, are few, and a renewal is sent again soon.
func (w *world) outage(f *fault) {
	for _, name := range w.names {
		d := w.latest(name)
		if d == nil || d.EveryReplica {
			continue
		}
		sent := map[string][]*trace.Event{}
		for _, q := range w.entries[name].requests {
			if q.Cause != "" && !q.Sent.Before(f.Time) && q.Sent.Before(f.End) {
				sent[q.Replica] = append(sent[q.Replica], q)
			}
		}
		for replica, all := range sent {
			w.patient(f, name, replica, d, all)
		}
	}
}

const mostInASecond = 20 // requests of a replica for one job

func (w *world) patient(f *fault, name, replica string, d *trace.Definition, all []*trace.Event) {
	for i, q := range all {
		if longest := max(d.Lease/6, 2500*time.Millisecond); q.Done.Sub(q.Sent) > longest+slack {
			w.bad("P outage", q.Sent, "%s waits %s for its %s of %s", replica, q.Done.Sub(q.Sent), q.Op, name)
		}
		if i >= mostInASecond && q.Sent.Sub(all[i-mostInASecond].Sent) < time.Second {
			w.bad("P outage", q.Sent, "%s sends more than %d requests for %s in a second", replica, mostInASecond, name)
		}
		for _, next := range all[i+1:] {
			if q.Op == "renew" && next.Op == "renew" && next.Lease == q.Lease && q.Sent.After(f.Time.Add(d.Lease*2/5)) { // one was due by then
				if pause := next.Sent.Sub(q.Done); pause > d.Lease/10+slack {
					w.bad("P outage", q.Sent, "%s renews the lease of %s again %s after a failure", replica, name, pause)
				}
				break
			}
		}
	}
}

// afterOutage: when the store answers again, others go on as after a death.
func (w *world) afterOutage(f *fault) {
	w.goesOn(f, "P outage", f.End.Add(f.length()), f.takeOver())
}

// givenUp: who may not write the outcome of a run gives its lease up after four.
func (w *world) givenUp(f *fault) {
	if !f.r.End.IsZero() && f.r.End.Before(f.End) {
		w.goesOn(f, "P denied", f.r.End.Add(5*f.length()), f.takeOver())
	}
}

// denied: who may not write costs no tick beside those that came due before it gave up what it ran.
func (w *world) denied(f *fault) {
	held := map[string]time.Time{}
	for _, hit := range w.hits(*f) {
		held[hit.e.name] = hit.r.End.Add(5*hit.length() + hit.takeOver())
	}
	for _, name := range w.names {
		for _, t := range w.entries[name].outcomes {
			if t.Status == store.Missed && t.Tick.After(f.Time) && t.Tick.After(held[name]) && t.write.Time.Before(f.until) {
				w.bad("P denied", t.write.Time, "tick %s of %s is missed, and %s alone may not write", clock(t.Tick), name, f.Replica)
			}
		}
	}
}

// takenBack: once the replica of an aborted deploy is gone, others take the job back within minutes.
func (w *world) takenBack(f *fault) {
	var last *trace.Event
	for _, q := range f.e.writes {
		if q.Record != nil && q.Time.Before(f.End) {
			last = q
		}
	}
	by := f.End.Add(trace.Patience)
	if !slices.ContainsFunc(f.e.writes, func(q *trace.Event) bool {
		its := w.definition(q.Replica, f.Job)
		return q.Record != nil && its != nil && its.Every == f.d.Every && !q.Time.Before(last.Time) && !q.Time.After(by)
	}) {
		w.bad("P deploy", by, "the replica of an aborted deploy is gone since %s, and nobody takes %s back", clock(f.End), f.Job)
	}
}

// paused: each replica knows a pause within seconds.
func (w *world) paused(f *fault) {
	for _, r := range f.e.runs {
		if r.Time.After(f.Heard.Add(binds)) && r.Time.Before(f.End) {
			w.bad("P control", r.Time, "%s begins %s, which is paused since %s", r.Replica, f.Job, clock(f.Heard))
		}
	}
}

// cancelled: a run that was cancelled ends within seconds.
func (w *world) cancelled(f *fault) { w.ends(f, "P control", f.Heard.Add(binds)) }

// yielded: one that was handed over has the time that others need to come near, and a job the longest grace.
func (w *world) yielded(f *fault) {
	more := f.d.Lease/3 + time.Second
	if f.d.Every > 0 {
		more = longestGrace
	}
	w.ends(f, "P control", f.Heard.Add(binds+more))
}

// orderedRun: a run that was ordered begins within seconds.
func (w *world) orderedRun(f *fault) {
	by := f.Heard.Add(binds + calls(3))
	if !slices.ContainsFunc(f.e.runs, func(r *run) bool { return r.Request == f.Request && !r.Time.After(by) }) {
		w.bad("P control", by, "%s of %s was ordered at %s, and has not begun", f.Request, f.Job, clock(f.Heard))
	}
}

// deadlines: from the first fault on, nothing is claimed after its starting deadline, and what was claimed begins within five
// sixths of its lease.
func (w *world) deadlines(from time.Time) {
	for _, name := range w.names {
		for _, r := range w.entries[name].runs {
			d := w.definition(r.Replica, name)
			if r.claim == nil || d == nil || d.Every == 0 || r.Time.Before(from) || r.Request != "" {
				continue
			}
			if d.StartingDeadline > 0 && r.claim.Time.After(r.Tick.Add(d.StartingDeadline+time.Second+roundTrip)) {
				w.bad("P deadline", r.claim.Time, "%s claims tick %s of %s after its starting deadline", r.Replica, clock(r.Tick), name)
			}
			if by := later(r.claim.Time, r.Tick).Add(d.Lease * 5 / 6); r.Try == 1 && r.Time.After(by) {
				w.bad("P deadline", r.Time, "%s begins tick %s of %s long after its claim", r.Replica, clock(r.Tick), name)
			}
		}
	}
}

// recovered: a while after a fault, until the next one, each tick begins in time and each singleton runs.
func (w *world) recovered(f *fault) {
	from := later(f.Time, f.End).Add(recovers)
	if f.Op == trace.AbortOther {
		from = from.Add(trace.Patience)
	}
	if f.Op == trace.KillAll {
		return
	}
	for _, name := range w.names {
		e, d := w.entries[name], w.latest(name)
		switch {
		case d == nil || d.EveryReplica:
		case d.Every > 0:
			w.inTime(e, d, from, f.until)
		case !slices.ContainsFunc(e.runs, func(r *run) bool {
			return slices.ContainsFunc(r.live, func(s span) bool { return s.from.Before(f.until) && s.to.After(f.until.Add(-10*time.Second)) })
		}):
			w.bad("P recovered", f.until, "%s does not run after %q at %s", name, f.Op, clock(f.Time))
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
	for _, name := range w.names {
		e, d := w.entries[name], w.latest(name)
		if d == nil || d.EveryReplica || d.Follows != "" {
			continue
		}
		soon := starts + calls(4)
		for tick := d.After(f.Time); tick.Add(up + soon).Before(f.until); tick = d.After(tick) {
			by := later(tick.Add(max(0, up-z.Lead)), f.Time.Add(z.Hold+up)).Add(soon)
			if !slices.ContainsFunc(e.runs, func(r *run) bool { return !r.Tick.Before(tick) && !r.Time.After(by) }) {
				w.bad("P alarm", by, "all replicas were killed at %s, and tick %s of %s has not begun", clock(f.Time), clock(tick), name)
			}
		}
	}
}
