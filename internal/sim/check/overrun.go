package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// overruns: Overrun is called for each run that goes on for a sixth of its lease
// after the replica had lost that, or given it up, whatever had ended the
// context of the run before.
func overruns(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, t := range l.index.terms[job] {
			r := t.last()
			if r == nil || r.End.IsZero() {
				continue
			}
			length := time.Duration(t.claim.Record.Run.Lease)
			if d := l.definition(r.Replica, job); d != nil && d.Lease > 0 {
				length = d.Lease
			}
			lost := l.lostAt(t)
			by := lost.Add(length/6 + noticed)
			for _, f := range l.index.freezes[r.Replica] {
				if f.End.After(lost) && !f.Time.After(by) { // one that comes later is no excuse
					by = later(by, f.End.Add(length/6+noticed))
				}
			}
			if lost.IsZero() || !r.End.After(by) || !l.crashed(r.Replica).IsZero() && !l.crashed(r.Replica).After(by) {
				continue
			}
			if !slices.ContainsFunc(l.of(job, Overran), func(e *Event) bool {
				return e.Replica == r.Replica && e.Time.After(t.claim.Time) && !e.Time.After(by)
			}) {
				bad(by, "%s goes on until %s, its lease was lost at %s, and nobody ends its process", r.name(), TimeOfDay(r.End), TimeOfDay(lost))
			}
		}
	}
}

// lostAt is when a replica lost the lease of a term at the latest, or gave it up
// since its run had stalled, as far as its last try saw that; zero: it did not.
func (l *Log) lostAt(t *term) time.Time {
	r := t.last()
	if r.Cause == store.ErrLost.Error() || r.Cause == soloist.ErrStalled.Error() {
		return r.Cancelled
	}
	until := l.lapse(t.claim, r.End)
	for e := range l.leased(t.claim) {
		if e.Replica == r.Replica && e.Op == "renew" && !e.Heard.IsZero() && refused(e) && e.Heard.Before(until) {
			until = e.Heard
		}
	}
	if until.Before(r.Time) || !until.Before(r.End) {
		return time.Time{}
	}
	return until
}

// refused reports whether an answer says that the lease is lost. One that is cut off
// says nothing.
func refused(e *Event) bool {
	return (e.Status == 404 || e.Status == 409 || e.Status == 412) && e.Cause != string(CutOff)
}

// lapse is when the trust in a claim's lease ended, by what was heard until t.
func (l *Log) lapse(claim *Event, t time.Time) time.Time {
	var answers []*Event
	for e := range l.leased(claim) {
		if e.OK() && !e.Heard.IsZero() && (e.Op == "acquire" || e.Op == "renew") {
			answers = append(answers, e)
		}
	}
	until := l.trusted(answers, claim.Replica, t)
	if by, beats := l.beatsTo(claim, t); beats {
		until = earlier(until, by)
	}
	return until
}
