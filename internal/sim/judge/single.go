package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A settled cluster meets one thing at a time, and nothing else until that is left behind. So what the documents promise about
// time is one comparison each, and nothing is excused.

const (
	roundTrip    = 1800 * time.Millisecond // a request and its answer, at most
	recovers     = 90 * time.Second        // two of the longest leases, a look, and calls
	longestGrace = 26 * time.Second
)

// A fault is one thing that has befallen the cluster.
type fault struct {
	*trace.Event
	until time.Time // the next one comes
	e     *entryLog
	d     *trace.Definition
	r     *run // that it has hit
}

// single judges each fault: what it has hit, the cluster meanwhile, and a while later.
func (w *world) single() {
	all := w.of[trace.Single]
	for i, s := range all[:max(0, len(all)-1)] { // the last one is none
		f := &fault{Event: s, until: all[i+1].Time, e: w.entries[s.Job], d: w.latest(s.Job)}
		for _, hit := range w.hits(f) {
			w.ends(hit)
			w.goesOn(hit)
			if s.Op == trace.UnlockDeaf || s.Op == trace.StallDeaf {
				w.overrun(hit)
			}
		}
		if holds := ofAll[s.Op]; holds != nil {
			holds(w, f)
		}
		if s.Op != trace.KillAll {
			w.recovered(f)
		}
	}
	if len(all) > 0 {
		w.deadlines(all[0].Time)
	}
}

// hits returns the runs that a fault has hit: of its job alone, or all of its replica, or all.
func (w *world) hits(f *fault) (all []*fault) {
	of := func(all ...string) bool { return slices.Contains(all, f.Op) }
	cluster := of(trace.KillAll, trace.AbortOther, trace.PauseJob, trace.RunOrdered, trace.ShortCalls, trace.Over)
	machine := of(trace.Kill, trace.KillAhead, trace.Terminate, trace.TermAhead, trace.Suspend, trace.CutOne, trace.DenyOne)
	for _, r := range w.runs {
		lives := r.goesOn(f.Time.Add(-1)) && (r.Cancelled.IsZero() || !r.Cancelled.Before(f.Time))
		under := r.claim != nil && !r.Time.After(f.Time) && lives
		its := f.Op == trace.CutAll || r.Replica == f.Replica && (machine || r.e.name == f.Job)
		if under && its && !cluster {
			all = append(all, &fault{f.Event, f.until, r.e, w.latest(r.e.name), r})
		}
	}
	if len(all) == 0 && !cluster && !of(trace.KillAhead, trace.TermAhead) {
		w.bad("P hit", f.Time, "%q at %s has hit no run of %s on %s", f.Op, clock(f.Time), f.Job, f.Replica)
	}
	return all
}

// lease is that of the store of what was hit, length the shorter one if it beats, look how often others look at it, and calls how
// long n calls take.
func (f *fault) lease() time.Duration { return time.Duration(f.r.claim.Record.Run.Lease) }

func (f *fault) length() time.Duration { return cmp.Or(f.r.claim.Record.Beats(), f.lease()) }

func (f *fault) look() time.Duration { return f.length()/3 + 300*time.Millisecond }

func calls(n time.Duration) time.Duration { return n * roundTrip }

// takeOver is how long others take to find a lease that is over, and to claim: what beats has to be broken first, and who takes
// a shard has to have seen that a replica is gone.
func (f *fault) takeOver() time.Duration {
	d := f.look() + calls(3)
	if f.d != nil && f.d.Beat > 0 {
		d += calls(1)
	}
	if f.d != nil && f.d.Spread() {
		d += f.length()/6 + calls(2)
	}
	return d
}

// endsBy is by when the context of a run ends that a fault has hit, zero for never.
func (w *world) endsBy(f *fault) (rule string, by time.Time) {
	single := f.d != nil && f.d.Every == 0
	near := f.length()/3 + time.Second // until others have come near
	switch f.Op {
	case trace.Suspend: // the machine knows that within a second
		return "P thaw", f.End.Add(noticed)
	case trace.CutOne, trace.CutAll: // who cannot renew gives up a sixth of the lease before its end
		return "P cut short", f.Time.Add(f.length() * 5 / 6)
	case trace.Unlock: // its next renewal shows that; the store takes beats until its lease ends
		return "P revoked", f.Heard.Add(f.lease()/3 + calls(1))
	case trace.UnlockNow, trace.UnlockDeaf:
		return "P revoked", f.Heard.Add(f.length()/3 + calls(1))
	case trace.Stall, trace.StallDeaf: // the next check after its time shows that, which may wait for a write
		return "P stall", later(f.r.Beat, f.r.Time).Add(f.d.HeartbeatTimeout + calls(1))
	case trace.CancelRun:
		return "P control", f.Heard.Add(binds)
	case trace.HandOver:
		if !single {
			near = longestGrace
		}
		return "P control", f.Heard.Add(binds + near)
	case trace.Terminate, trace.TermAhead: // within the grace of its replica
		if stop := w.stopping[f.Replica]; stop != nil && single {
			return "P shutdown", first(stop.End, f.Time.Add(near)).Add(slack)
		} else if stop != nil {
			return "P shutdown", stop.End.Add(slack)
		}
	}
	return "", time.Time{}
}

// ends: the context of the run that was hit ends in time.
func (w *world) ends(f *fault) {
	rule, by := w.endsBy(f)
	end := f.r.End
	if !f.r.Cancelled.IsZero() {
		end = first(end, f.r.Cancelled)
	}
	if rule != "" && (end.IsZero() || end.After(by)) {
		w.bad(rule, by, "%s meets %q at %s, and its context lives until %s", f.r, f.Op, clock(f.Time), clock(end))
	}
}

// free is from when others have something to do, and within what time they do it. A hold-off after an unlock is a lease.
func (f *fault) free() (rule string, from time.Time, within time.Duration) {
	switch n := f.length(); f.Op {
	case trace.Kill, trace.KillAhead, trace.Suspend, trace.CutOne:
		return "P failover", f.Time.Add(n), f.takeOver()
	case trace.CutAll:
		return "P outage", f.End.Add(n), f.takeOver()
	case trace.Unlock:
		return "P unlock", f.Heard.Add(f.lease() + n), f.look() + f.takeOver()
	case trace.UnlockNow, trace.UnlockDeaf:
		return "P unlock", f.Heard.Add(n), f.look() + f.takeOver()
	case trace.Stall: // others are near
		return "P replaced", f.r.End, 300*time.Millisecond + calls(3)
	case trace.StallDeaf:
		return "P replaced", f.r.Cancelled.Add(n), f.takeOver()
	case trace.HandOver, trace.Terminate, trace.TermAhead:
		return "P handed over", f.r.End, f.look() + calls(2)
	case trace.DenyOne: // who may not write the outcome of a run gives its lease up after four
		if !f.r.End.IsZero() && f.r.End.Before(f.End) {
			return "P denied", f.r.End.Add(5 * n), f.takeOver()
		}
	}
	return "", time.Time{}, 0
}

// goesOn: when others have something to do, another run has soon begun in the place of what was hit, or its tick has its outcome.
// What is not run again has it before the next tick.
func (w *world) goesOn(f *fault) {
	rule, from, within := f.free()
	if rule == "" {
		return
	}
	if d := f.d; d != nil && d.Every > 0 {
		late := d.StartingDeadline > 0 && from.After(f.r.Tick.Add(d.StartingDeadline))
		if late || d.Interrupted != soloist.Rerun {
			from = later(from, d.After(f.Time))
		}
	}
	by := from.Add(within)
	if by.After(f.until) {
		w.bad("P rest", f.Time, "the next fault comes before the bound of %q is over: %s", f.Op, clock(by))
	}
	if !slices.ContainsFunc(f.e.runs, func(o *run) bool { return o.Token > f.r.Token && !o.Time.After(by) }) &&
		!slices.ContainsFunc(f.e.outcomes, func(t outcome) bool { return t.Token == f.r.Token && !t.write.Time.After(by) }) {
		w.bad(rule, by, "%s meets %q at %s, and no replica goes on", f.r, f.Op, clock(f.Time))
	}
}

// overrun: a run that goes on without its lease is reported within a sixth of it.
func (w *world) overrun(f *fault) {
	from, by := f.r.Cancelled, f.r.Cancelled.Add(f.length()/6+noticed)
	if !slices.ContainsFunc(w.of[trace.Overran], func(o *trace.Event) bool {
		return o.Replica == f.Replica && o.Job == f.Job && !o.Time.Before(from) && !o.Time.After(by)
	}) {
		w.bad("P overrun", by, "%s goes on since %s without its lease, and nothing ends its process", f.r, clock(from))
	}
}
