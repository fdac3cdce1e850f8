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

// ofRuns are what is promised of each run that a fault has hit, ofAll what is promised of the cluster.
var (
	ofRuns = map[string][]func(*world, *fault){
		trace.Kill:       {(*world).failover},
		trace.KillAhead:  {(*world).failover},
		trace.Terminate:  {(*world).stopped, (*world).goneOver},
		trace.Suspend:    {(*world).failover, (*world).thaw},
		trace.Unlock:     {(*world).revoked, (*world).unlocked},
		trace.UnlockNow:  {(*world).revoked, (*world).unlocked},
		trace.UnlockDeaf: {(*world).revoked, (*world).unlocked, (*world).overrun},
		trace.Stall:      {(*world).stalled, (*world).replaced},
		trace.StallDeaf:  {(*world).stalled, (*world).overrun, (*world).replacedLate},
		trace.CutOne:     {(*world).cutShort, (*world).failover},
		trace.CutAll:     {(*world).cutShort, (*world).afterOutage},
		trace.DenyOne:    {(*world).givenUp},
		trace.CancelRun:  {(*world).cancelled},
		trace.HandOver:   {(*world).yielded, (*world).goneOver},
	}
	ofAll = map[string][]func(*world, *fault){
		trace.KillAhead:  {(*world).failoverAhead},
		trace.KillAll:    {(*world).awoken},
		trace.Terminate:  {(*world).shutdown},
		trace.CutOne:     {(*world).outage},
		trace.CutAll:     {(*world).outage},
		trace.DenyOne:    {(*world).denied},
		trace.AbortOther: {(*world).takenBack},
		trace.PauseJob:   {(*world).paused},
		trace.RunOrdered: {(*world).orderedRun},
	}
)

// single judges each fault: what it has hit, the cluster meanwhile, and a while later.
func (w *world) single() {
	all := w.of[trace.Single]
	for i, s := range all[:max(0, len(all)-1)] { // the last one is none
		f := fault{Event: s, until: all[i+1].Time, e: w.entries[s.Job], d: w.latest(s.Job)}
		for _, hit := range w.hits(f) {
			for _, holds := range ofRuns[s.Op] {
				holds(w, &hit)
			}
		}
		for _, holds := range ofAll[s.Op] {
			holds(w, &f)
		}
		if s.Op != trace.KillAll {
			w.recovered(&f)
		}
	}
	if len(all) > 0 {
		w.deadlines(all[0].Time)
	}
}

// hits returns the runs that a fault has hit: of its job alone, or all of its replica, or all.
func (w *world) hits(f fault) (all []fault) {
	machine := slices.Contains([]string{trace.Kill, trace.KillAhead, trace.Terminate, trace.Suspend, trace.CutOne, trace.DenyOne}, f.Op)
	for _, name := range w.names {
		for _, r := range w.entries[name].runs {
			under := r.claim != nil && !r.Time.After(f.Time) && (r.End.IsZero() || !r.End.Before(f.Time)) && (r.Cancelled.IsZero() || !r.Cancelled.Before(f.Time))
			its := f.Op == trace.CutAll || r.Replica == f.Replica && (machine || name == f.Job)
			if under && its {
				one := f
				one.e, one.d, one.r = w.entries[name], w.latest(name), r
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 && ofRuns[f.Op] != nil && f.Op != trace.KillAhead {
		w.bad("P hit", f.Time, "%q at %s has hit no run of %s on %s", f.Op, clock(f.Time), f.Job, f.Replica)
	}
	return all
}

// length is the lease of what was hit, look how often others look at it, and calls how long n calls take.
func (f *fault) length() time.Duration {
	return cmp.Or(f.r.claim.Record.Beats(), time.Duration(f.r.claim.Record.Run.Lease))
}

func (f *fault) look() time.Duration { return f.length()/3 + 300*time.Millisecond }

func calls(n time.Duration) time.Duration { return n * roundTrip }

// goesOn: some time after from, when others have something to do, another run has begun in the place of what was hit, or its
// tick has its outcome. What is not run again has it before the next tick.
func (w *world) goesOn(f *fault, rule string, from time.Time, within time.Duration) {
	if d := f.d; d != nil && d.Every > 0 && (d.Interrupted != soloist.Rerun || d.StartingDeadline > 0 && from.After(f.r.Tick.Add(d.StartingDeadline))) {
		from = later(from, d.After(f.Time))
	}
	by := from.Add(within)
	if by.After(f.until) {
		w.bad("P rest", f.Time, "the next fault comes before the bound of %q is over: %s", f.Op, clock(by))
	}
	if !slices.ContainsFunc(f.e.runs, func(o *run) bool { return o.Token > f.r.Token && !o.Time.After(by) }) &&
		!slices.ContainsFunc(f.e.outcomes, func(t outcome) bool { return t.Token == f.r.Token && !t.write.Time.After(by) }) {
		w.bad(rule, by, "%s of %s meets %q at %s, and nobody goes on with token %d", f.Replica, f.e.name, f.Op, clock(f.Time), f.r.Token)
	}
}

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

// end is when the context of the run that was hit ended, or the run.
func (f *fault) end() time.Time {
	if end := f.r.End; f.r.Cancelled.IsZero() || !end.IsZero() && end.Before(f.r.Cancelled) {
		return end
	}
	return f.r.Cancelled
}

// ends: the context of the run that was hit ends by a time.
func (w *world) ends(f *fault, rule string, by time.Time) {
	if end := f.end(); end.IsZero() || end.After(by) {
		w.bad(rule, by, "%s of %s meets %q at %s, and its context lives until %s", f.Replica, f.Job, f.Op, clock(f.Time), clock(end))
	}
}
