package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about ticks that come due while their job runs. They go by the calls of Do, and not by
// what a record says of them.

// waiting: of the ticks that come due under a run which has ended as it should, none is run under
// SkipOverlap, and none but the newest under QueueOne and Replace.
func waiting(l *Log, bad report) {
	for _, job := range l.index.jobs {
		runs := l.runs(job)
		for _, p := range runs {
			d, from, to := l.spanUnder(&p)
			if d == nil || d.Missed == soloist.RunAll || d.Follows != "" {
				continue
			}
			for _, r := range runs {
				if r.Token == p.Token || r.Request != "" || r.Try != 1 || r.Attempt != 1 || r.Tick.Before(from) || r.Tick.After(to) || !l.alike(job, d, r.Replica) {
					continue
				}
				if newest := !d.After(r.Tick).Before(to); d.Overlap == soloist.SkipOverlap || !newest {
					bad(r.Time, "%s begins, and its tick came due under %s, which has %q", r.name(), p.name(), d.Overlap)
				}
			}
		}
	}
}

// waited: the newest of the ticks that come due under a run is run after it, unless a newer one comes due
// first, or something may hinder that.
func waited(l *Log, bad report) {
	for _, job := range l.index.jobs {
		runs := l.runs(job)
		for _, p := range runs {
			d, from, to := l.spanUnder(&p)
			if d == nil || d.Overlap == soloist.SkipOverlap || d.Group != "" || d.Paused {
				continue
			}
			if p.Cause == soloist.ErrReplaced.Error() {
				to = p.Cancelled.Add(l.termOf(job, p.Token).doubtAt(p.Cancelled))
			}
			tick := d.Last(to)
			end := later(p.End, tick)
			by := end.Add(promptly)
			window, limited := d.window(tick, 1)
			if tick.Before(from) || !d.After(end).After(by) || limited && by.After(tick.Add(window)) || by.After(l.end()) || l.hindersNext(job, &p, by) {
				continue
			}
			if !slices.ContainsFunc(runs, func(r Event) bool { return !r.Tick.Before(tick) && r.Time.After(p.Time) && r.Time.Before(by) }) {
				bad(by, "tick %s of %s is not run, and came due under %s, which returned at %s", TimeOfDay(tick), job, p.name(), TimeOfDay(p.End))
			}
		}
	}
}

// promptly is within what time a tick that has waited is run if nothing hinders that.
const promptly = 8 * time.Second

// spanUnder returns in what time ticks surely came due under a run, and the definition of its replica. It is nil if
// other replicas may take the ticks for those of no run: it was not the last of its term, its outcome is
// not known to be written, or its tick may be repeated.
func (l *Log) spanUnder(p *Event) (d *Definition, from, to time.Time) {
	t := l.termOf(p.Job, p.Token)
	if d = l.definition(p.Replica, p.Job); t == nil || d == nil || d.Every == 0 || p.Request != "" || p.End.IsZero() || t.last() == nil || t.last().Try != p.Try {
		return nil, from, to
	}
	repeats := p.Cause == "" && p.Note == "context canceled" || p.Cause == store.ErrLost.Error() || p.Cause == soloist.ErrStalled.Error() || p.Cause == soloist.ErrStopped.Error()
	repeats = repeats || p.Cause == "" && strings.HasPrefix(p.Note, store.ErrLost.Error()) // it returned just before its context ended
	crash := l.crashed(p.Replica)
	// A run that ignores the end of its context is one that was stopped if the stop comes before its return, whatever the cause
	// was; and one that has failed may be stopped before its next try.
	end := p.End
	if p.Note != "" {
		end = t.over
	}
	repeats = repeats || slices.ContainsFunc(l.of("", Stop), func(e *Event) bool { return e.Replica == p.Replica && e.Time.Before(end) })
	repeats = repeats || p.Note != "" && l.askedToYield(t) // the same if its replica was to hand over
	if repeats || p.Attempt > 1 || len(l.of(p.Job, Corrupted)) > 0 || l.forgot(p.Job, p.Time, l.end()) || l.frozen(p.Replica, t.sent, t.gone()) != nil || !crash.IsZero() && crash.Before(t.gone()) {
		return nil, from, to
	}
	wrote := slices.ContainsFunc(l.writes(p.Job), func(e *Event) bool {
		return e.Op == "finish" && e.Lease == t.claim.Lease && e.Record != nil && e.Record.Token == p.Token && e.Sent.After(p.End)
	})
	if !wrote {
		return nil, from, to
	}
	return d, later(t.claim.Time, p.Tick).Add(t.doubt()), p.End.Add(-t.doubtAt(p.End))
}

// alike reports whether a replica has the ticks of a definition.
func (l *Log) alike(job string, d *Definition, replica string) bool {
	mine := l.definition(replica, job)
	return mine != nil && mine.Every == d.Every
}

// hindersNext reports whether something may keep the replica of a run, and all others, from the next one.
func (l *Log) hindersNext(job string, p *Event, by time.Time) bool {
	from := p.End.Add(-unrest / 3)
	return l.orderedAround(job, from, by) || l.touched(job, from, by) || l.others(job, from, by) || l.replicaHindered(p.Replica, job, from, by) || l.mayPauseItself(job)
}

// mayPauseItself reports whether a job may pause itself.
func (l *Log) mayPauseItself(job string) bool {
	for replica := range l.Fleet {
		if d := l.definition(replica, job); d != nil && d.PauseAfter > 0 {
			return true
		}
	}
	return false
}

// replacements: under Replace the context of a run ends when a newer tick is due, as far as its replica can know;
// under no other policy does it end for that, never before, and not once that replica is to stop. Its tick is not run again, and the
// next run starts once it has returned.
func replacements(l *Log, bad report) {
	for _, job := range l.index.jobs {
		runs := l.runs(job)
		for _, r := range runs {
			d, t := l.definition(r.Replica, job), l.termOf(job, r.Token)
			if d == nil || t == nil || d.Every == 0 {
				continue
			}
			if r.Cause != soloist.ErrReplaced.Error() {
				if end := l.believed(&r); d.Overlap == soloist.Replace && r.Request == "" && l.livesOn(&r, d, t, end) {
					bad(end, "the context of %s lives until %s, and tick %s is due", r.name(), TimeOfDay(end), TimeOfDay(d.After(later(r.Time, r.Tick))))
				}
				continue
			}
			if !l.mayBeReplaced(t) || d.count(r.Tick, r.Cancelled.Add(t.doubtAt(r.Cancelled))) == 0 {
				bad(r.Cancelled, "%s is replaced, and no newer tick was due", r.name())
			}
			if slices.ContainsFunc(l.of("", Stop), func(e *Event) bool { return e.Replica == r.Replica && e.Time.Before(r.Cancelled.Add(-moment)) }) {
				bad(r.Cancelled, "%s is replaced, and its replica is to stop", r.name())
			}
			for _, next := range runs {
				// A try of an earlier claim may be late, after a suspension: see belief.
				again := next.Tick.Equal(r.Tick) && next.Token >= r.Token && next.Request == "" && next.Time.After(r.Cancelled)
				if again && !l.forgot(job, r.Time, next.Time) && !l.mayBePaused(job, next.Time) && !l.mayBePaused(job, r.Cancelled) && l.alike(job, d, next.Replica) && l.definition(next.Replica, job).Overlap == soloist.Replace {
					bad(next.Time, "%s begins, and %s was replaced", next.name(), r.name())
				}
				beside := next.Time.After(r.Cancelled) && next.Time.Before(r.End) && next.Token != r.Token
				if beside && l.frozen(r.Replica, r.Time, next.Time) == nil && !l.touched(job, r.Time, next.Time) && !l.replicaHindered(r.Replica, job, r.Time, next.Time) {
					bad(next.Time, "%s begins, and %s has not returned", next.name(), r.name())
				}
			}
		}
	}
}

// livesOn reports whether a run that nothing hinders goes on until end although a newer tick is due.
func (l *Log) livesOn(r *Event, d *Definition, t *term, end time.Time) bool {
	newer := d.After(later(r.Time, r.Tick))
	by := newer.Add(t.doubtAt(newer) + time.Second)
	return end.After(by) && l.frozen(r.Replica, r.Time.Add(-moment), by) == nil && !l.mayBePaused(r.Job, newer) && !l.mayBePaused(r.Job, by) &&
		!l.askedToYield(t) && !l.startsNothing(r, newer.Add(-unrest/3), by)
}

// startsNothing reports whether something may keep the replica of a run from starting another one then: a fault, a run of
// its that goes on after the end of its context, or the end of the call that it is in.
func (l *Log) startsNothing(r *Event, from, by time.Time) bool {
	if l.replicaHindered(r.Replica, r.Job, from, by) || slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == r.Replica && u.Cause != "" }) {
		return true
	}
	for name := range l.index.events {
		if slices.ContainsFunc(l.of(name, Ran), func(e *Event) bool {
			return e.Replica == r.Replica && !e.Cancelled.IsZero() && e.Cancelled.Before(by) && (e.End.IsZero() || e.End.After(from))
		}) {
			return true
		}
	}
	return false
}

// mayBeReplaced reports whether the run of a term is one of a tick, under Replace.
func (l *Log) mayBeReplaced(t *term) bool {
	d := l.definition(t.claim.Replica, t.claim.Job)
	return d != nil && d.Overlap == soloist.Replace && t.claim.Record.Run.Request == ""
}

// isReplaced reports whether an outcome says that a newer tick has taken the place of the run.
func isReplaced(f *store.Outcome) bool {
	return f.Status == store.Cancelled && strings.HasPrefix(f.Reason, soloist.ErrReplaced.Error()+" by the tick of ")
}

// contradictsReplaced is contradictsRun for a run that was replaced.
func (l *Log) contradictsReplaced(t *term, d *Definition) string {
	tick := t.tick()
	switch r := t.last(); {
	case !l.mayBeReplaced(t):
		return "its job has no such policy"
	case r == nil: // a newer tick was due when the run was to begin
		return unless(d.count(tick, t.over.Add(t.doubtAt(t.over))) > 0, "no newer tick was due")
	case (r.Cause == "" || r.Cause == soloist.ErrTimeout.Error()) && r.Note != "": // it came between two tries
		return unless(d.count(tick, t.over.Add(t.doubtAt(t.over))) > 0, "no newer tick was due")
	default:
		return unless(r.Cause == soloist.ErrReplaced.Error(), "its context ended so: "+r.Cause)
	}
}
