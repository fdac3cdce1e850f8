package check

import (
	"slices"
	"time"
)

// The invariants about entries that an operator has corrupted.

// corrupted: nobody writes, leases or runs what is no record of this program, one
// that is ahead of time, or one with a lease that no store takes, and who has
// read it says so. One that is an older
// version is left alone by those that have written a newer one.
func corrupted(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, s := range until(l.of(job, Corrupted), slices.Concat(l.of(job, Deleted), l.of(job, Request))) {
			if s.Note == Older {
				laws(l, s, bad)
				continue
			}
			for _, e := range l.of(job, Request) {
				switch {
				case e.Replica == Operator || !e.OK() || e.precedes(s) || e.Time.After(s.End):
				case e.Op != "read":
					bad(e.Time, "%s has a %s of %s, whose entry is corrupted: %s", e.Replica, e.Op, job, s.Note)
				case !l.told(e, s):
					bad(e.Time, "%s reads %s, whose entry is corrupted: %s; and says nothing", e.Replica, job, s.Note)
				}
			}
		}
	}
}

// corruptedHealth: who has read a corrupted entry says in its Health that the job is
// broken, for as long as the entry is that.
func corruptedHealth(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, s := range until(l.of(job, Corrupted), slices.Concat(l.of(job, Deleted), l.of(job, Request))) {
			for _, f := range l.of(job, Fared) {
				if s.Note != Older && f.Note != IsBroken && f.Time.After(s.Time) && !f.Time.After(s.End) && l.hasToTell(f, s) {
					bad(f.Time, "the Health of %s says that %s is %s, whose entry is corrupted since %s: %s", f.Replica, job, f.Note, TimeOfDay(s.Time), s.Note)
				}
			}
		}
	}
}

// hasToTell reports whether a replica has had the time to tell in its Health of a
// corrupted entry that it has read, and does nothing else with its job.
func (l *Log) hasToTell(f, s *Event) bool {
	busy := slices.ContainsFunc(l.runs(f.Job), func(r Event) bool {
		return r.Replica == f.Replica && r.Time.Before(f.Time) && (r.End.IsZero() || r.End.After(s.Time))
	})
	comesAndGoes := slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == f.Replica && u.Cause != "" })
	if busy || comesAndGoes || l.asked(f.Replica, f.Time) || l.frozen(f.Replica, s.Time, f.Time) != nil {
		return false
	}
	return slices.ContainsFunc(l.of(f.Job, Request), func(e *Event) bool {
		return e.Replica == f.Replica && e.Op == "read" && e.OK() && !e.precedes(s) && !e.Heard.IsZero() && l.byThen(e).Before(f.Time)
	})
}

// precedes reports whether the service applied a request before the one that
// corrupted an entry.
func (e *Event) precedes(s *Event) bool {
	return e.Time.Before(s.Time) || e.Time.Equal(s.Time) && e.order < s.order
}

// until returns for how long a job's entry was corrupted: until it was mended, or
// deleted or written by another operator before.
func until(all, others []*Event) (short []*Event) {
	for _, s := range all {
		c := *s
		for _, e := range others {
			if e.ends() && e.Time.After(s.Time) && e.Time.Before(c.End) {
				c.End = e.Time
			}
		}
		short = append(short, &c)
	}
	return short
}

// ends reports whether an event ends what a job's entry was.
func (e *Event) ends() bool {
	return e.What == Deleted || e.Replica == Operator && e.Op == "write" && e.OK()
}

// told reports whether a replica says something of the corrupted entry that it has
// read. It may have said so before; and one that runs the job learns that it has
// lost its lease, and says that when the run is over, which it knows only when
// the service answers.
func (l *Log) told(read, s *Event) bool {
	by := l.byThen(read)
	if l.Zero != nil && slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == read.Replica && u.Cause == AtZero }) {
		return true // it also reads the entry to know when it is wanted next, and says nothing then
	}
	if read.Heard.IsZero() || s.End.Before(by) || !l.crashed(read.Replica).IsZero() || l.frozen(read.Replica, s.Time, by) != nil {
		return true
	}
	return slices.ContainsFunc(l.of(read.Job, Said), func(e *Event) bool {
		return e.Replica == read.Replica && e.Time.After(s.Time) && e.Time.Before(by)
	}) || slices.ContainsFunc(l.of("", Stop), func(e *Event) bool { return e.Replica == read.Replica && e.Time.Before(by) })
}

// byThen is when a replica has said what is wrong with the entry that it has read:
// later where its requests fail.
func (l *Log) byThen(read *Event) time.Time {
	by := read.Heard.Add(2 * time.Minute)
	for _, e := range l.of(read.Job, Request) {
		if e.Replica == read.Replica && e.Time.After(read.Time) && e.Time.Before(by) && (e.Heard.IsZero() || e.Status == 0 || e.Status >= 500) {
			by = e.Time.Add(2 * time.Minute)
		}
	}
	return by
}

// laws: who has claimed a tick for a record that is newer than one that was put
// back claims none for that, until others who did not know have caught up.
func laws(l *Log, s *Event, bad report) {
	for _, e := range l.Events {
		if e.Job != s.Job || !claimsTick(e) || e.precedes(s) || e.Time.After(s.End) {
			continue
		}
		for _, o := range l.Events {
			if o.Job == s.Job && o.Replica == e.Replica && claimsTick(o) && o.precedes(s) && !o.Heard.IsZero() && s.Record != nil &&
				o.Record.Created.Equal(s.Record.Created) && o.Record.Token >= e.Record.Token {
				bad(e.Time, "%s claims %s with token %d for an older version, and had token %d", e.Replica, e.Job, e.Record.Token, o.Record.Token)
				break
			}
		}
	}
}

// claimsTick reports whether an event is a claim that was not made by hand:
// each of those starts without knowing anything.
func claimsTick(e *Event) bool {
	return e.Op == "claim" && e.OK() && e.Record != nil && e.Record.Run.Request == ""
}

// A lawless is what replicas do for a job whose entry is an older version that
// somebody has put back: those that know no newer one repeat what was done, under
// tokens that there were, and none of the other invariants is about that.
type lawless struct {
	times map[string][]*Event // by job
	runs  map[run]time.Time   // that were claimed then
}

type run struct {
	replica, job string
	token        int64
}

func newLawless(events []*Event) *lawless {
	x := &lawless{times: map[string][]*Event{}, runs: map[run]time.Time{}}
	var ends []*Event
	for _, e := range events {
		if e.What == Corrupted && e.Note == Older {
			x.times[e.Job] = append(x.times[e.Job], e)
		} else if e.ends() {
			ends = append(ends, e)
		}
	}
	for job, all := range x.times {
		x.times[job] = until(all, slices.DeleteFunc(slices.Clone(ends), func(e *Event) bool { return e.Job != job }))
	}
	for _, e := range events {
		if e.OK() && e.Record != nil && e.Op == "claim" && x.in(e) {
			x.runs[run{e.Replica, e.Job, e.Record.Token}] = e.Time
		}
	}
	return x
}

// in reports whether an event comes while an older version is in place.
func (x *lawless) in(e *Event) bool {
	return e.Replica != Operator && slices.ContainsFunc(x.times[e.Job], func(s *Event) bool {
		return !e.precedes(s) && !e.Time.After(s.End)
	})
}

// of reports whether an event is to be left out.
func (x *lawless) of(e *Event) bool {
	if len(x.times[e.Job]) == 0 {
		return false
	}
	switch e.What {
	case Request:
		return e.OK() && e.Op != "read" && x.in(e)
	case Emitted:
		return x.in(e)
	case Ran, Said, Effect, Loaded:
		from, ok := x.runs[run{e.Replica, e.Job, e.Token}]
		return ok && !e.Time.Before(from)
	}
	return false
}
