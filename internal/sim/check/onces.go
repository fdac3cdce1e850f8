package check

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about what is done once for a key. That one replica at a time is at it is judged
// as it is for the runs of jobs.

// onces are the entries of what is done once.
func (l *Log) onces() []string { return slices.Sorted(maps.Keys(l.Onces)) }

// worked reports whether a function has done its work, or found that there was nothing to do.
func worked(r *Event) bool {
	return !r.End.IsZero() && (r.Note == "" || strings.Contains(r.Note, NothingToDo))
}

// NothingToDo is what a function says that had nothing to do.
const NothingToDo = "nothing to do"

// successes are the functions that have done the work of a key, and whose outcome the service has
// taken, with the time of that.
func (l *Log) successes(name string) (all []*Event) {
	for _, r := range l.runs(name) {
		for _, w := range l.writes(name) {
			if w.Op == "finish" && w.Record != nil && w.Record.Token == r.Token && worked(&r) && l.claimOf(name, r.Token) != nil && w.Lease == l.claimOf(name, r.Token).Lease {
				all = append(all, w)
				break
			}
		}
	}
	return all
}

// onceSucceeded: no function begins for a key after the success of one is written, but in
// a replica that was suspended before that, or after the entry was deleted.
func onceSucceeded(l *Log, bad report) {
	for _, name := range l.onces() {
		for _, w := range l.successes(name) {
			for _, r := range l.runs(name) {
				if r.Time.After(w.Time) && !l.late(&r, w) && !l.forgot(name, w.Time, r.Time) {
					bad(r.Time, "%s begins, and the work was done at %s", r.name(), TimeOfDay(w.Time))
				}
			}
		}
	}
}

// onceResults: Run returns nil only after a function has done the work, and gives the work up only
// after so many failures as are allowed.
func onceResults(l *Log, bad report) {
	for _, name := range l.onces() {
		for _, e := range l.of(name, Called) {
			runs, failures := l.runs(name), l.failures(name, e.End)
			switch most := l.Onces[name].MaxTries; {
			case e.End.IsZero():
			case e.Note == "" && !slices.ContainsFunc(runs, func(r Event) bool { return worked(&r) && !r.End.After(e.End) }):
				bad(e.End, "%s returns nil, and nobody has done the work of %s", e.Call, name)
			case gaveUp(e) && (most == 0 || failures < most && !l.forgot(name, l.Events[0].Time, e.End)):
				bad(e.End, "%s gives %s up after %d failures of %d", e.Call, name, failures, most)
			case e.Note != "" && !gaveUp(e) && e.Cancelled.IsZero():
				bad(e.End, "%s of %s ends before its context: %s", e.Call, name, e.Note)
			}
		}
	}
}

// failures is how often the work of a key was claimed until a time, and has not succeeded as far as
// others know, and was not stopped either. A replica may die between its claim and the work, or
// before the outcome is written. That the context of a call ends by its deadline is no stop, and before
// the outcome of a stop is written the run is one whose runner has died, once its lease has lapsed.
func (l *Log) failures(name string, to time.Time) (n int) {
	for _, c := range l.claimed(name) {
		done := slices.ContainsFunc(l.successes(name), func(w *Event) bool { return w.Lease == c.Lease && w.Time.Before(to) })
		if c.Time.Before(to) && !done && !(l.stopped(c) && l.askedWhile(c) && l.abandonedBy(c, to)) {
			n++
		}
	}
	return n
}

// abandonedBy reports whether the outcome of a claim that was stopped was written by a time.
func (l *Log) abandonedBy(claim *Event, to time.Time) bool {
	return slices.ContainsFunc(l.writes(claim.Job), func(w *Event) bool {
		return w.Lease == claim.Lease && w.Record != nil && w.Record.Run.Status == store.Abandoned && w.Time.Before(to)
	})
}

// askedWhile reports whether the replica of a claim was asked to stop before the outcome of its work.
func (l *Log) askedWhile(claim *Event) bool {
	t := l.termOf(claim.Job, claim.Record.Token)
	return t != nil && l.asked(claim.Replica, t.over.Add(1))
}

// onceTurns: once all faults are over, each Run returns, when the leases of those that died and the
// pause after the last failure are over.
func onceTurns(l *Log, bad report) {
	healed := l.healed()
	if healed.IsZero() {
		return
	}
	for _, name := range l.onces() {
		o := l.Onces[name]
		pause := o.Backoff
		if pause == 0 {
			pause = 10 * time.Second
		}
		for range l.claimed(name) {
			pause = min(2*pause, 5*time.Minute)
		}
		by := healed.Add(3*o.Lease + pause + 10*time.Second)
		if by.After(l.settled()) {
			continue
		}
		for _, e := range l.of(name, Called) {
			switch {
			case !e.End.IsZero() && e.End.Before(healed) || !l.staysUp(e.Replica, by):
			case e.End.IsZero() || e.End.After(by):
				bad(by, "%s waits since %s for %s, and goes on until %s", e.Call, TimeOfDay(e.Time), name, TimeOfDay(e.End))
			}
		}
	}
}
