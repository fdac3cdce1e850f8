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
	near         = 300 * time.Millisecond  // from one look to the next of who knows that a lease is about to end
	longestGrace = 26 * time.Second
)

// addFaults finds what each single fault has hit. The last single is none.
func (w *world) addFaults() {
	all := w.of[trace.Single]
	for i, s := range all[:max(0, len(all)-1)] {
		f := &fault{Event: s, until: all[i+1].Time, e: w.entries[s.Job], d: w.latest(s.Job)}
		for _, r := range w.runs {
			over := r.over()
			if r.claim != nil && f.meets(r) && !r.Time.After(f.Time) && (over.IsZero() || !over.Before(f.Time)) {
				f.hits = append(f.hits, &fault{Event: s, until: f.until, e: r.e, d: w.latest(r.e.name), r: r})
			}
		}
		w.faults = append(w.faults, f)
	}
}

// meets reports whether a fault meets a run: of its job alone, or any one of its replica, or any one.
func (f *fault) meets(r *run) bool {
	switch f.Op {
	case trace.CutAll:
		return true
	case trace.Kill, trace.KillAhead, trace.Terminate, trace.TermAhead, trace.Suspend, trace.CutOne, trace.DenyOne, trace.ShortCalls:
		return r.Replica == f.Replica
	}
	return r.Replica == f.Replica && r.e.name == f.Job
}

// hitNone: a fault that is to hit a run has hit one.
func hitNone(_ *world, f *fault, bad report) {
	needNot := []string{trace.KillAhead, trace.TermAhead, trace.KillAll, trace.AbortOther, trace.PauseJob, trace.RunOrdered, trace.Sweep}
	if len(f.hits) == 0 && !slices.Contains(needNot, f.Op) {
		bad(f.Time, "%q at %s has hit no run of %s on %s", f.Op, clock(f.Time), f.Job, f.Replica)
	}
}

// lease is the store's lease of what was hit, length the shorter lease if it beats, look how often others look at it, and
// calls how long n calls take.
func (f *fault) lease() time.Duration { return time.Duration(f.r.claim.Record.Run.Lease) }

func (f *fault) length() time.Duration { return cmp.Or(f.r.claim.Record.Beats(), f.lease()) }

func (f *fault) look() time.Duration { return f.length()/3 + near }

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

// bounds are by when the context of the run ends that a fault has hit, from when others have something to do, and within what
// time they do it. A time of zero is never. Others hold off for a lease after an unlock.
func (w *world) bounds(f *fault) (ends, from time.Time, within time.Duration) {
	n, within := f.length(), f.takeOver()
	grace := longestGrace
	if f.d != nil && f.d.Every == 0 { // a singleton ends when others have come near
		grace = n/3 + time.Second
	}
	switch f.Op {
	case trace.Kill, trace.KillAhead:
		from = f.Time.Add(n)
	case trace.Suspend: // the machine knows that within a second
		ends, from = f.End.Add(noticed), f.Time.Add(n)
	case trace.CutOne: // who cannot renew gives up a sixth of the lease before its end
		ends, from = f.Time.Add(n*5/6), f.Time.Add(n)
	case trace.CutAll:
		ends, from = f.Time.Add(n*5/6), f.End.Add(n)
	case trace.Unlock: // the next renewal shows that; the store takes beats until its lease ends
		ends = f.Heard.Add(f.lease()/3 + calls(1))
		from, within = f.Heard.Add(f.lease()+n), f.look()+within
	case trace.UnlockNow, trace.UnlockDeaf:
		ends = f.Heard.Add(n/3 + calls(1))
		from, within = f.Heard.Add(n), f.look()+within
	case trace.Stall, trace.StallDeaf: // the next check after its time shows that, which may wait for a write
		ends = later(f.r.Beat, f.r.Time).Add(f.d.HeartbeatTimeout + calls(1))
		if from = f.r.Cancelled.Add(n); f.Op == trace.Stall {
			from, within = f.r.End, near+calls(3)
		}
	case trace.HandOver:
		ends = f.Heard.Add(binds + grace)
		from, within = f.r.End, f.look()+calls(2)
	case trace.Terminate, trace.TermAhead:
		if stop := w.stopping[f.Replica]; stop != nil {
			ends = first(stop.End, f.Time.Add(grace)).Add(slack)
		}
		from, within = f.r.End, f.look()+calls(2)
	case trace.DenyOne: // who may not write the outcome of a run gives its lease up after four
		if !f.r.End.IsZero() && f.r.End.Before(f.End) {
			from = f.r.End.Add(5 * n)
		}
	case trace.ShortCalls: // some of the calls meanwhile go on
		from, within = f.End, 0
	}
	return ends, from, within
}

// ends: the context of each run that was hit ends in time.
func ends(w *world, f *fault, bad report) {
	for _, hit := range f.hits {
		by, _, _ := w.bounds(hit)
		if end := hit.r.over(); !by.IsZero() && (end.IsZero() || end.After(by)) {
			bad(by, "%s meets %q at %s, and its context lives until %s", hit.r, f.Op, clock(f.Time), clock(end))
		}
	}
}

// goesOn: when others have something to do, another run has soon begun in the place of each that was hit, or its tick has its
// outcome; and the next fault comes later. What is not run again has its outcome before the next tick.
func goesOn(w *world, f *fault, bad report) {
	for _, hit := range f.hits {
		_, from, within := w.bounds(hit)
		if from.IsZero() {
			continue
		}
		if d := hit.d; d != nil && d.Every > 0 {
			late := d.Late.Start > 0 && from.After(hit.r.Tick.Add(d.Late.Start))
			if late || d.Interrupted != soloist.Rerun {
				from = later(from, d.After(f.Time))
			}
		}
		by, token := from.Add(within), hit.r.Token
		settled := slices.ContainsFunc(hit.e.outcomes, func(o outcome) bool { return o.Token == token && !o.write.Time.After(by) })
		if by.After(f.until) || !settled && !hit.e.begun(by, func(r *run) bool { return r.Token > token }) {
			bad(by, "%s meets %q at %s, and no replica goes on before %s", hit.r, f.Op, clock(f.Time), clock(f.until))
		}
	}
}
