package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// emitted: each outcome that a replica has written is an event of that replica, once: Ended
// for its own run, Settled for other ticks. And each of these events is an outcome that the
// replica has written. A replica that says that a write is in doubt, or that was killed, may
// have written what it does not tell.
func emitted(l *Log, bad report) {
	if !l.Emits {
		return
	}
	for _, job := range l.index.jobs {
		said := map[string]int{} // by what the event says, minus what was written so far
		for _, e := range l.of(job, Emitted) {
			if c := l.claimOf(job, e.Token); e.Op == string(event.Ended) && c != nil && c.several() {
				continue // see emittedBeside
			}
			if e.Op == string(event.Ended) || e.Op == string(event.Settled) && store.BackfillOf(e.Request) == 0 {
				said[e.fate(e.Tick, e.Token, store.Status(e.Note), e.Op == string(event.Ended))]++
			}
		}
		for _, c := range l.claimed(job) {
			if c.several() {
				emittedBeside(l, c, bad)
			}
		}
		for _, w := range l.written(job) {
			fate := w.write.fate(w.outcome.Tick, w.outcome.Token, w.outcome.Status, w.own)
			if said[fate]--; said[fate] < 0 {
				if said[fate] = 0; !l.inDoubt(w) && !l.putBack(w.write) {
					bad(w.write.Time, "the event is missing: %s of %s", fate, job)
				}
			}
		}
		for _, e := range l.of(job, Emitted) {
			if fate := e.fate(e.Tick, e.Token, store.Status(e.Note), e.Op == string(event.Ended)); said[fate] > 0 && !l.putBack(e) {
				bad(e.Time, "an event says what is not written, or was told before: %s of %s", fate, job)
				said[fate] = 0
			}
		}
	}
}

// fate names what becomes of a tick by the replica of e.
func (e *Event) fate(tick time.Time, token int64, status store.Status, own bool) string {
	kind := event.Settled
	if own {
		kind = event.Ended
	}
	return fmt.Sprintf("%s %s: tick %s %s, token %d", e.Replica, kind, TimeOfDay(tick), status, token)
}

// A written is an outcome in a write that was the first to have it.
type written struct {
	write   *Event
	outcome store.Outcome
	own     bool // of the run that was claimed under the same lease
}

// written returns the outcomes of a job in the order of their writes. The tick of a run that
// another replica may repeat has no outcome in the history yet, but its run has.
func (l *Log) written(job string) (all []written) {
	for _, n := range l.index.told[job] {
		t := l.termOf(job, n.outcome.Token)
		all = append(all, written{n.write, n.outcome, t != nil && t.claim.Lease == n.write.Lease && t.claim.Replica == n.write.Replica})
	}
	for _, t := range l.index.terms[job] {
		if t.claim.several() {
			continue
		}
		if e := l.leftOpen(job, t); e != nil {
			run := &e.Record.Run
			all = append(all, written{e, store.Outcome{Tick: run.Tick, Token: e.Record.Token, Status: run.Status}, true})
		}
	}
	return all
}

// leftOpen returns the first write of a term that ends its run and gives its tick no outcome,
// nil if there is none.
func (l *Log) leftOpen(job string, t *term) *Event {
	for _, e := range l.writes(job) {
		r := e.Record
		if r == nil || e.Lease != t.claim.Lease || r.Token != t.claim.Record.Token || e.Op == "take back" || r.Run.Status == store.Running {
			continue
		}
		if slices.ContainsFunc(r.History, func(o store.Outcome) bool { return o.Token == r.Token }) {
			return nil
		}
		return e
	}
	return nil
}

// putBack reports whether an operator has put back an older version of the entry, or taken it
// away, within a minute of e. What replicas write in between is left out, and so is what they
// emit, but an event may come later than its write.
func (l *Log) putBack(e *Event) bool {
	return slices.ContainsFunc(l.of(e.Job, Corrupted), func(s *Event) bool {
		return s.Note == Older && (s.Time.Sub(e.Time).Abs() < time.Minute || s.End.Sub(e.Time).Abs() < time.Minute)
	})
}

// inDoubt reports whether the replica that wrote an outcome was killed, or has told that it
// does not know of the write: that a claim was not confirmed, that the outcome of the run may
// not be in the record, or that a run has stalled, whose end may never come.
func (l *Log) inDoubt(w written) bool {
	e := w.write
	if c := l.crashed(e.Replica); !c.IsZero() {
		heard := e.Heard
		if f := l.frozen(e.Replica, heard, heard.Add(moment)); f != nil {
			heard = f.End // when the machine went on
		}
		if e.Heard.IsZero() || c.Before(heard.Add(time.Minute)) {
			return true
		}
	}
	return slices.ContainsFunc(l.of(e.Job, Emitted), func(o *Event) bool {
		if o.Replica != e.Replica {
			return false
		}
		later := !o.Time.Before(e.Sent)
		switch event.Kind(o.Op) {
		case event.NotClaimed:
			return later && (e.Op == "claim" || e.Op == "settle")
		case event.Unrecorded:
			return later && o.Token == e.Record.Token
		case event.Stalled: // a suspension may put the write off until after the event
			return o.Token == e.Record.Token && !l.ended(o)
		}
		return false
	})
}

// ended reports whether an event that the run of another has ended follows it.
func (l *Log) ended(of *Event) bool {
	return slices.ContainsFunc(l.of(of.Job, Emitted), func(e *Event) bool {
		return e.Replica == of.Replica && e.Token == of.Token && e.Op == string(event.Ended)
	})
}
