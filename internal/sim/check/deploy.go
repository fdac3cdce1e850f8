package check

import (
	"slices"
	"strings"
	"time"
)

// takenBack: replicas of an older definition take a job back within minutes of
// its next tick, once no replica of an aborted deploy is up, where nothing else
// happens meanwhile.
func takenBack(l *Log, bad report) {
	for _, u := range l.of("", Up) {
		end := l.gone(u.Replica)
		if u.Cause != Aborted || end.IsZero() {
			continue
		}
		for _, job := range l.index.jobs {
			last, d, its := l.lastWrite(job, end), l.latest(job), l.definition(u.Replica, job)
			same := d == nil || its == nil || its.sameTicks(d)
			if same || last == nil || last.Replica != u.Replica || d.Paused || job == Foreign {
				continue
			}
			due := end
			if d.Every > 0 {
				due = d.After(last.Time)
			}
			by := later(due, end).Add(Patience)
			if by.After(l.end()) || !l.attended(end, by) || !l.undisturbed(job, end, by) {
				continue
			}
			if !slices.ContainsFunc(l.writes(job), func(e *Event) bool {
				return e.Record != nil && e.Record.Definition.Spec != last.Record.Definition.Spec && e.Time.After(end) && !e.Time.After(by)
			}) {
				bad(by, "%s is gone since %s, and nobody takes %s back", u.Replica, TimeOfDay(end), job)
			}
		}
	}
}

// attended reports whether a replica that is not of an aborted deploy is up from
// from to to.
func (l *Log) attended(from, to time.Time) bool {
	return slices.ContainsFunc(l.of("", Up), func(u *Event) bool {
		gone := l.gone(u.Replica)
		return u.Time.Before(from) && u.Cause != Aborted && (gone.IsZero() || gone.After(to))
	})
}

// gone is when a replica crashed or had stopped, zero if neither.
func (l *Log) gone(replica string) time.Time {
	crash := l.crashed(replica)
	for _, e := range l.of("", Gone) {
		if e.Replica == replica && (crash.IsZero() || e.Time.Before(crash)) {
			return e.Time
		}
	}
	return crash
}

// lastWrite is the last write of a job's entry that left a record, up to t.
func (l *Log) lastWrite(job string, t time.Time) (last *Event) {
	for _, e := range l.writes(job) {
		if e.Record != nil && !e.Time.After(t) {
			last = e
		}
	}
	return last
}

// undisturbed reports whether no replica comes or goes or is suspended after
// from, until to, and no fault hits the job's entry.
func (l *Log) undisturbed(job string, from, to time.Time) bool {
	for _, what := range []What{Up, Stop, Gone, Crash, Freeze, Down} {
		if slices.ContainsFunc(l.of("", what), func(e *Event) bool { return e.Time.After(from) && e.Time.Before(to) }) {
			return false
		}
	}
	if slices.ContainsFunc(l.of(job, Request), func(e *Event) bool {
		return (e.Cause != "" || e.Replica == Operator) && e.Time.After(from) && e.Sent.Before(to)
	}) {
		return false
	}
	for _, what := range []What{Deleted, Corrupted, Leased} {
		if slices.ContainsFunc(l.of(job, what), func(e *Event) bool { return e.Time.Before(to) && (e.Time.After(from) || e.End.After(from)) }) {
			return false
		}
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// occupied: a tool that holds the lease of an entry for minutes, and claims
// nothing, is told by each replica that is up all the while and looks at it.
func occupied(l *Log, bad report) {
	for _, job := range l.index.jobs {
		d := l.latest(job)
		for _, e := range l.of(job, Leased) {
			if d == nil || d.Every == 0 || d.Every > occupiedFor/4 || e.End.Sub(e.Time) < occupiedFor || !l.alone(job, e.Time, e.End) || l.orderedAround(job, e.Time, e.End) {
				continue
			}
			for _, u := range l.of("", Up) {
				if u.Cause != "" || u.Time.After(e.Time) || l.definition(u.Replica, job) == nil || l.replicaHindered(u.Replica, job, e.Time, e.End) ||
					l.frozen(u.Replica, e.Time, e.End) != nil {
					continue
				}
				if !l.tellsOccupied(u.Replica, e) {
					bad(e.End, "a tool held the lease of %s since %s, and %s said nothing", job, TimeOfDay(e.Time), u.Replica)
				}
			}
		}
	}
}

// tellsOccupied reports whether the log of a replica tells that a tool holds a
// lease. It does not tell it again of a second tool, where no look has shown the
// lease free in between. A replica whose definition is not in force tells that
// instead: it leaves the job alone anyway.
func (l *Log) tellsOccupied(replica string, leased *Event) (tells bool) {
	for _, s := range l.of(leased.Job, Said) {
		switch {
		case s.Replica != replica || !s.Time.Before(leased.End):
		case s.Time.After(leased.Time):
			return true
		case s.Note == "the job is left alone":
			tells = strings.Contains(s.Cause, "by a client that claims nothing") || strings.Contains(s.Cause, "has another schedule for this job")
		case s.Note == "the job is looked after again":
			tells = false
		}
	}
	return tells
}

// occupiedFor is how long a tool may hold a lease until each replica has said so:
// twice the longest lease, and a look.
const occupiedFor = 5 * time.Minute

// alone reports whether nobody wrote a job's entry between two times, and no run
// of it was under way when they began.
func (l *Log) alone(job string, from, to time.Time) bool {
	last := l.lastWrite(job, from)
	written := slices.ContainsFunc(l.of(job, Request), func(e *Event) bool { return e.Writes() && e.Time.After(from) && e.Time.Before(to) })
	return last != nil && !written && !last.Record.Run.Finished.IsZero() && len(l.of(job, Corrupted)) == 0
}
