package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// unhindered: no tick is missed that comes due while nothing hinders a replica
// that is up: neither a fault of its own, nor one of the entry. What another
// replica may not do, such as write, is no excuse.
func unhindered(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, n := range l.index.told[job] {
			d := l.definition(n.write.Replica, job)
			if n.outcome.Request != "" || n.outcome.Status != store.Missed || n.outcome.Reason == "the schedule changed" || d == nil || d.Every == 0 || d.Missed == soloist.RunAll || d.Follows != "" {
				continue
			}
			for tick := d.After(n.mark); !tick.After(n.outcome.Tick); tick = d.After(tick) {
				if up := l.downAt(tick); !up.IsZero() {
					tick = d.Last(up)
					continue
				}
				if fit := l.fit(job, d, tick); fit != "" {
					bad(n.write.Time, "tick %s of %s is missed (%s), and nothing hindered %s", TimeOfDay(tick), job, n.outcome.Reason, fit)
					break
				}
			}
		}
	}
}

// fit is a replica that nothing hinders from claiming a tick from a minute and a
// half before it until its window ends, empty if there is none. The slots of its group have to be free for long enough.
func (l *Log) fit(job string, d *Definition, tick time.Time) string {
	window, _ := d.window(tick, 1)
	from, to := tick.Add(-unrest), tick.Add(min(window, d.Every)-time.Second)
	if l.orderedAround(job, from, to) {
		return ""
	}
	free := tick
	if d.Group != "" {
		free = later(free, l.fullUntil(d, tick, to))
	}
	if to.Sub(free) < 10*time.Second+d.Lease || l.entryHindered(job, from, to) || l.others(job, from, to) {
		return ""
	}
	for _, u := range l.of("", Up) {
		mine := l.definition(u.Replica, job)
		if u.Cause == "" && u.Time.Before(from) && mine != nil && mine.Every == d.Every && !mine.Paused && !l.replicaHindered(u.Replica, job, from, to) {
			return u.Replica
		}
	}
	return ""
}

// unrest is how long what befell a cluster may have its effect.
const unrest = 90 * time.Second

// entryHindered reports whether the entry of a job was not as it should be
// between two times, or a run of the job was under way, its outcome included.
func (l *Log) entryHindered(job string, from, to time.Time) bool {
	return l.touched(job, from, to) || l.underWay(job, from.Add(unrest), to)
}

// touched reports whether the entry of a job was not as it should be between two times.
func (l *Log) touched(job string, from, to time.Time) bool {
	for _, what := range []What{Deleted, Corrupted, Leased} {
		if slices.ContainsFunc(l.of(job, what), func(e *Event) bool { return e.Time.Before(to) && (e.Time.After(from) || e.End.After(from)) }) {
			return true
		}
	}
	for _, e := range l.of(job, Request) {
		if (e.Replica == Operator || e.Cause != "" && e.Cause != string(ReadOnly)) && e.Sent.Before(to) && e.Time.After(from) {
			return true
		}
	}
	return false
}

// underWay reports whether a run of a job was under way between two times, its outcome included.
func (l *Log) underWay(job string, from, to time.Time) bool {
	for _, t := range l.index.terms[job] {
		if t.sent.Before(to) && t.gone().After(from) {
			return true
		}
	}
	return false
}

// others reports whether a replica came, went or ran something on after the end
// of its context between two times, or one of another definition was up.
func (l *Log) others(job string, from, to time.Time) bool {
	for _, what := range []What{Up, Stop, Gone, Crash, Freeze, Down} {
		if slices.ContainsFunc(l.of("", what), func(e *Event) bool {
			return e.Time.Before(to) && (e.Time.After(from) || e.End.After(from) || e.What == Up && e.Cause != "" && !l.over(e, job, from))
		}) {
			return true
		}
	}
	for name := range l.index.events {
		for _, e := range l.of(name, Ran) {
			over := !e.Cancelled.IsZero() && e.Cancelled.Before(to) && (e.End.IsZero() || e.End.After(from)) && e.End.Sub(e.Cancelled) > time.Second
			if over {
				return true
			}
		}
	}
	return false
}

// over reports whether what a replica has left behind that did not stay is over at t: it may have had another definition,
// which the others leave in force for a while.
func (l *Log) over(u *Event, job string, t time.Time) bool {
	gone := l.gone(u.Replica)
	if d := l.latest(job); u.Cause == Aborted && d != nil && !gone.IsZero() {
		gone = later(gone, d.After(gone)).Add(Patience)
	}
	return !gone.IsZero() && gone.Add(unrest).Before(t)
}

// replicaHindered reports whether a fault hinders a replica.
func (l *Log) replicaHindered(replica, job string, from, to time.Time) bool {
	for _, what := range []What{Stop, Gone, Crash} {
		if slices.ContainsFunc(l.of("", what), func(e *Event) bool { return e.Replica == replica && e.Time.Before(to) }) {
			return true
		}
	}
	// A replica that cannot read the orders of operators starts nothing, nor does one that cannot take a slot.
	requests := slices.Concat(l.of(job, Request), slices.DeleteFunc(slices.Clone(l.of("", Request)), func(e *Event) bool { return !e.OfDocument() }))
	if d := l.definition(replica, job); d != nil {
		for _, slot := range d.slotsOfGroup() {
			requests = append(requests, l.of(slot, Request)...)
		}
	}
	return slices.ContainsFunc(requests, func(e *Event) bool {
		fault := e.Cause == string(ReadOnly) || e.Time.After(from) && (e.Cause != "" || e.Heard.IsZero())
		return e.Replica == replica && fault && e.Sent.Before(to)
	})
}

// downAt is the end of the time in which no replica is up that contains t, zero if
// none does.
func (l *Log) downAt(t time.Time) time.Time {
	for _, e := range l.of("", Down) {
		if t.After(e.Time) && t.Before(e.End) {
			return e.End
		}
	}
	return time.Time{}
}
