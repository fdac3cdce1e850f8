package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
)

// The invariants about how long a job is without a runner.

// roundTrip is the longest that a request and its answer take, where nothing
// goes wrong.
const roundTrip = 2 * 900 * time.Millisecond

// A gap is a time in which a job had no runner though it was to have one.
type gap struct {
	run      *Event // that ended
	from, to time.Time
}

// gaps are the ones from the ends of runs that others were to go on with, as
// ended says, to the next start; with never, also to the end of the log where there is none.
func (l *Log) gaps(ended func(r *Event) (time.Time, bool), never bool) (all []gap) {
	for _, job := range l.index.jobs {
		runs := l.runs(job)
		for i := range runs {
			from, ok := ended(&runs[i])
			if !ok || !l.goesOn(&runs[i]) {
				continue
			}
			n := slices.IndexFunc(runs, func(o Event) bool { return o.Time.After(from) })
			if n < 0 && never && !l.orderedAround(job, from, l.end()) {
				all = append(all, gap{&runs[i], from, l.end()})
			}
			if n >= 0 && !l.orderedAround(job, from, runs[n].Time) {
				all = append(all, gap{&runs[i], from, l.begun(&runs[n])})
			}
		}
	}
	return all
}

// goesOn reports whether another replica is to go on where a run ends early.
func (l *Log) goesOn(r *Event) bool {
	d := l.definition(r.Replica, r.Job)
	inTime := d != nil && (d.StartingDeadline == 0 || r.Tick.Add(d.StartingDeadline).After(l.believed(r).Add(2*time.Minute)))
	return d != nil && inTime && r.Request == "" && (d.Interrupted == soloist.Rerun && r.Attempt < 5 || d.Schedule == "" && d.Every == 0)
}

// died returns when a run ended since its replica crashed.
func (l *Log) died(r *Event) (time.Time, bool) {
	c := l.crashed(r.Replica)
	return c, !c.IsZero() && r.End.Equal(c) && r.Cancelled.IsZero()
}

// hushed returns when a run that had stalled had its last heartbeat.
func (l *Log) hushed(r *Event) (time.Time, bool) {
	return r.beat(), r.Cause == soloist.ErrStalled.Error()
}

func (e *Event) beat() time.Time {
	if e.Beat.IsZero() {
		return e.Time
	}
	return e.Beat
}

// Failovers are the times from the crash of a replica that ran what others go on
// with to the next start of that.
func (l *Log) Failovers() []time.Duration { return spans(l.gaps(l.died, false)) }

// Replacements are the times from the last heartbeat of a run that has stalled,
// where others go on with it, to the next start.
func (l *Log) Replacements() []time.Duration { return spans(l.gaps(l.hushed, false)) }

func spans(gaps []gap) (all []time.Duration) {
	for _, g := range gaps {
		all = append(all, g.to.Sub(g.from))
	}
	return all
}

// failover: what a crashed replica ran begins on another when its lease has run
// out, which takes no longer than its length, and another has looked, which it
// does at each third of it; and acquired, and claimed. This is so where nothing
// else happens meanwhile. A shard of a singleton may not be acquired before another has
// seen in a listing, a sixth of the lease later at most, that there is one replica less.
func failover(l *Log, bad report) {
	for _, g := range l.gaps(l.died, true) {
		claim := l.claimOf(g.run.Job, g.run.Token)
		if claim == nil {
			continue
		}
		d := l.definition(claim.Replica, claim.Job)
		length, trips := time.Duration(claim.Record.Run.Lease), 3*roundTrip
		if beat := claim.beats(); beat > 0 && (d == nil || !d.Spread()) { // a shard waits for the leases of the members
			length, trips = beat, 4*roundTrip // the lease has to be broken first
		}
		by := g.from.Add(length + length/3 + 300*time.Millisecond + trips)
		if d != nil && d.Group != "" { // it waits for a slot of its group too, behind others
			continue
		}
		if d != nil && d.Spread() && (d.brief() || d.rest() > time.Minute) { // others may rest after runs of their own
			continue
		}
		if d != nil && d.Spread() {
			by = by.Add(length/6 + 2*roundTrip)
		}
		if g.to.After(by) && l.calm(claim, g.from, by) {
			bad(g.to, "%s crashed at %s, and the next run begins %s later", g.run.Replica, TimeOfDay(g.from), g.to.Sub(g.from))
		}
	}
}

// calm reports whether nothing but the crash of its holder at from befalls a
// claimed job until to, and another replica is there that has looked on since
// the claim.
func (l *Log) calm(claim *Event, from, to time.Time) bool {
	job, begin := claim.Job, from.Add(-30*time.Second)
	during := func(e *Event) bool { return e.Time.After(begin) && e.Time.Before(to) }
	for _, e := range l.of(job, Request) {
		underway := !e.Sent.IsZero() && e.Sent.Before(to) && e.Time.After(begin)
		if underway && (e.Cause != "" || e.Replica == Operator) {
			return false
		}
	}
	for _, e := range l.of("", Request) { // who cannot read the orders of operators starts nothing
		if e.OfDocument() && e.Cause != "" && e.Sent.Before(to) && e.Time.After(begin) {
			return false
		}
	}
	for _, what := range []What{Up, Stop, Gone, Crash, Freeze} {
		for _, e := range l.of("", what) {
			if (during(e) || what == Freeze && e.End.After(begin) && e.Time.Before(to)) && !e.Time.Equal(from) {
				return false
			}
		}
	}
	for _, what := range []What{Deleted, Corrupted} {
		if slices.ContainsFunc(l.of(job, what), func(e *Event) bool { return during(e) || e.End.After(begin) && e.Time.Before(to) }) {
			return false
		}
	}
	return slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return l.heir(u, claim, to) })
}

// heir reports whether a replica that is up takes a claimed job over.
func (l *Log) heir(u, claim *Event, to time.Time) bool {
	mine, its := l.definition(u.Replica, claim.Job), l.definition(claim.Replica, claim.Job)
	stopped := slices.ContainsFunc(slices.Concat(l.of("", Stop), l.of("", Crash)), func(e *Event) bool {
		return e.Replica == u.Replica && e.Time.Before(to)
	})
	denied := slices.ContainsFunc(l.of(claim.Job, Request), func(e *Event) bool { // it comes back to the job later
		return e.Replica == u.Replica && (e.Cause == string(ReadOnly) || e.Cause == string(Denied)) && e.Time.Before(to) && e.Time.After(claim.Time.Add(-2*time.Minute))
	})
	if denied || u.Replica == claim.Replica || u.Cause != "" || !u.Time.Before(claim.Time) || stopped ||
		mine == nil || mine.Every != its.Every || mine.Paused || its.Paused {
		return false
	}
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			busy := job == claim.Job && r.End.After(claim.Time.Add(-2*time.Minute)) // it leaves what it has handed over alone for a while
			deaf := !r.Cancelled.IsZero() && r.End.Sub(r.Cancelled) > time.Second && r.End.After(claim.Time)
			if r.Replica == u.Replica && r.Time.Before(to) && (r.End.IsZero() || busy || deaf) {
				return false
			}
		}
	}
	return true
}

// stalls: the context of a run ends when it has told no progress for its
// HeartbeatTimeout, and a third of the lease for telling others that it will and does.
func stalls(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			d := l.definition(r.Replica, job)
			if d == nil || d.HeartbeatTimeout == 0 {
				continue
			}
			end, by := l.believed(&r), r.beat().Add(d.HeartbeatTimeout+d.Lease/3+noticed)
			if f := l.frozen(r.Replica, r.beat(), end); f != nil { // silence counts what the machine was up
				by = by.Add(f.End.Sub(f.Time))
			}
			if end.After(by) {
				bad(end, "the context of %s lives, and it was silent since %s", r.name(), TimeOfDay(r.beat()))
			}
		}
	}
}

// recovery: a replica that is up when all faults are over looks after each of
// its jobs that has something due, without a restart.
func recovery(l *Log, bad report) {
	healed := l.healed()
	if healed.IsZero() {
		return
	}
	for _, u := range l.of("", Up) {
		gone := slices.ContainsFunc(slices.Concat(l.of("", Stop), l.of("", Gone), l.of("", Crash)), func(e *Event) bool {
			return e.Replica == u.Replica && e.Time.Before(healed.Add(Settling))
		})
		if gone || u.Cause != "" || u.Time.After(healed) {
			continue
		}
		for _, d := range l.Fleet[u.Replica] {
			if d.EveryReplica || d.Every > 0 && d.count(healed, healed.Add(Settling-time.Minute)) == 0 {
				continue
			}
			if !slices.ContainsFunc(l.of(d.Name, Request), func(e *Event) bool {
				return e.Replica == u.Replica && e.Sent.After(healed) && !e.Heard.IsZero() && e.Status > 0
			}) {
				bad(healed, "%s does not look after %s any more", u.Replica, d.Name)
			}
		}
	}
}
