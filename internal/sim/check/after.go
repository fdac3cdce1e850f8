package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about jobs that follow others.

// Before returns the names of the jobs that a job follows.
func (d *Definition) Before() []string {
	if d.Follows == "" {
		return nil
	}
	return strings.Split(d.Follows, ", ")
}

// followers: a run of a follower starts only when a run of each job before it for that tick has
// returned well, and the service had taken its outcome; under AfterAny when the service had taken
// that the tick has an outcome. A run by hand waits for nothing, and nothing waits for one.
func followers(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			d := l.definition(r.Replica, job)
			if d == nil || d.Follows == "" || r.Request != "" {
				continue
			}
			for _, before := range d.Before() {
				if !l.spoiltFor(before, r.Tick, r.Time) && !l.preceded(before, r.Tick, r.Time, d.FollowsAny) {
					bad(r.Time, "%s begins, and %s has not ended for it", r.name(), before)
				}
			}
		}
	}
}

// spoiltBy reports whether an operator had put something else in the place of the record of a job by a
// time, such as an older one: then what its followers read is not what replicas wrote.
func (l *Log) spoiltBy(job string, at time.Time) bool {
	return slices.ContainsFunc(l.of(job, Corrupted), func(e *Event) bool { return e.Time.Before(at) })
}

// spoiltFor is spoiltBy for a tick: what an operator has put tells of no tick that comes after it was mended.
func (l *Log) spoiltFor(job string, tick, at time.Time) bool {
	return slices.ContainsFunc(l.of(job, Corrupted), func(e *Event) bool {
		return e.Time.Before(at) && (e.Note == Older || !tick.After(e.End.Add(5*time.Second)))
	})
}

// preceded reports whether the run of a job for a tick had succeeded at a time, as the service
// knew, or, with any, its tick was settled.
func (l *Log) preceded(job string, tick, at time.Time, any bool) bool {
	if any {
		return slices.ContainsFunc(l.writes(job), func(e *Event) bool {
			return e.Time.Before(at) && e.Record != nil && !e.Record.Watermark.Before(tick)
		})
	}
	return slices.ContainsFunc(l.runs(job), func(r Event) bool {
		return r.Request == "" && r.Tick.Equal(tick) && r.Note == "" && !r.End.IsZero() && r.End.Before(at) && l.finished(&r, at)
	})
}

// finished reports whether the service had taken, at a time, that a run is over.
func (l *Log) finished(r *Event, at time.Time) bool {
	return slices.ContainsFunc(l.writes(r.Job), func(e *Event) bool {
		return e.Op == "finish" && e.Replica == r.Replica && e.Record != nil && e.Record.Token == r.Token && e.Time.After(r.End) && e.Time.Before(at)
	})
}

// awaited is the latest that a follower may read as the end of the last of the runs that its tick waits for: when the
// service had taken the outcome, by the clock of who wrote it. It returns false if an outcome tells no end, or is not known.
func (l *Log) awaited(d *Definition, tick time.Time) (last time.Time, ok bool) {
	for _, before := range d.Before() {
		n := l.toldOf(before, tick)
		if n == nil || n.outcome.End.IsZero() {
			return last, false
		}
		told := n.write.Time.Add(time.Second)
		if t := l.termOf(before, n.outcome.Token); t != nil {
			told = n.write.Time.Add(t.doubtAt(n.write.Time))
		}
		last = later(last, told)
	}
	return last, true
}

// toldOf is the outcome of a tick of a job as it was first told, nil if it was not.
func (l *Log) toldOf(job string, tick time.Time) *told {
	all := l.index.told[job]
	if i := slices.IndexFunc(all, func(n told) bool { return covers(&n.outcome, tick) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// covers reports whether an outcome is that of a tick.
func covers(f *store.Outcome, tick time.Time) bool {
	return f.Request == "" && (f.Tick.Equal(tick) || !f.From.IsZero() && tick.After(f.From) && tick.Before(f.Tick))
}

// contradictsBefore is contradicts for what the jobs before a follower are the reason of. It
// returns false if they are not.
func (l *Log) contradictsBefore(d *Definition, n told) (why string, about bool) {
	f := n.outcome
	for _, before := range d.Before() {
		if l.spoiltBy(before, n.write.Time) {
			about = about || strings.HasPrefix(f.Reason, before+" ") || strings.Contains(f.Reason, " "+before+" ")
			continue
		}
		for tick := d.After(n.mark); !tick.After(f.Tick); tick = d.After(tick) {
			switch status, skipped := strings.CutPrefix(f.Reason, before+" "); {
			case skipped && f.Status == store.Skipped:
				about = true
				if !l.toldAs(before, tick, store.Status(status), n.write.Time) {
					return "no record of " + before + " says so of " + TimeOfDay(tick), true
				}
			case f.Reason == "the outcome of "+before+" is not known" && f.Status == store.Missed:
				about = true
				if !l.knewNone(before, tick, n.write.Time) {
					return "each record of " + before + " has an outcome of " + TimeOfDay(tick), true
				}
			}
		}
	}
	return "", about
}

// toldAs reports whether a tick of a job had an outcome of a status before a time.
func (l *Log) toldAs(job string, tick time.Time, status store.Status, at time.Time) bool {
	for _, e := range slices.Backward(between(l.writes(job), time.Time{}, at)) { // mostly one of the last
		if e.Record != nil && slices.ContainsFunc(e.Record.History, func(f store.Outcome) bool { return covers(&f, tick) && f.Status == status }) {
			return true
		}
	}
	return false
}

// knewNone reports whether a record of a job before a time had settled a tick, and had no outcome
// of it.
func (l *Log) knewNone(job string, tick, at time.Time) bool {
	for _, e := range slices.Backward(between(l.writes(job), time.Time{}, at)) {
		r := e.Record
		if r != nil && !r.Watermark.Before(tick) && !slices.ContainsFunc(r.History, func(f store.Outcome) bool { return covers(&f, tick) }) {
			return true
		}
	}
	return false
}

// followed reports whether a replica reads the entry of a job also for a follower of it.
func (l *Log) followed(replica, job string) bool {
	return slices.ContainsFunc(l.Fleet[replica], func(d Definition) bool { return slices.Contains(d.Before(), job) })
}
