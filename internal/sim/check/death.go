package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// contradictsDeath is contradicts for the outcome of a run that another claim's
// holder writes.
func (l *Log) contradictsDeath(t *term, d *Definition, n told) string {
	switch f := n.outcome; {
	case f.Status != store.Abandoned && f.Status != store.Stalled:
		return "its own replica alone could know"
	case strings.HasPrefix(f.Reason, "unlocked"):
		return unless(l.broken(t, n.write.Time), "nobody had broken its lease")
	case strings.HasPrefix(f.Reason, "its runner died"):
		return unless(l.disturbed(t, n.write.Time), "nothing had befallen its runner")
	}
	e := l.leftOpen(t.claim.Job, t)
	said := e != nil && e.Record.Run.Status == n.outcome.Status
	return unless(said || n.outcome.Status == store.Stalled && l.toldStalled(t, n.write.Time), "its own replica has not said so")
}

// broken reports whether an operator broke the lease of a term before a time.
func (l *Log) broken(t *term, to time.Time) bool {
	return slices.ContainsFunc(l.of(t.claim.Job, Request), func(e *Event) bool {
		return e.Op == "break" && e.OK() && e.Time.After(t.acquired()) && e.Time.Before(to)
	})
}

// disturbed reports whether anything befell the runner of a term, or its entry,
// from its claim to a time: else it would have told the outcome itself.
func (l *Log) disturbed(t *term, to time.Time) bool {
	replica, job, from := t.claim.Replica, t.claim.Job, t.sent.Add(-noticed)
	if l.frozen(replica, from, to) != nil || !l.crashed(replica).IsZero() && l.crashed(replica).Before(to) {
		return true
	}
	if t.claim.Heard.IsZero() { // the trust ended before the answer, so nothing ran
		return true
	}
	for _, e := range l.of(job, Request) {
		byOther := e.Replica == Operator && e.Op != "read"
		unanswered := t.claim.beats() > 0 && e.Op == "beat" && e.Heard.IsZero() // in the short time that a beat has
		if (e.Replica == replica && (e.Cause != "" || unanswered) || byOther) && e.Time.After(from) && e.Sent.Before(to) {
			return true
		}
	}
	for _, r := range t.tries {
		if r.Cause == store.ErrLost.Error() || r.Cause == soloist.ErrStalled.Error() {
			return true
		}
	}
	during := func(e *Event) bool { return e.Time.After(from) && e.Time.Before(to) }
	return slices.ContainsFunc(slices.Concat(l.of(job, Deleted), l.of(job, Corrupted)), during) ||
		slices.ContainsFunc(l.of("", Stop), func(e *Event) bool { return e.Replica == replica && e.Time.Before(to) }) ||
		slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == replica && u.Cause != "" })
}

// maxDeaths is how many runners a tick may cost under Rerun.
const maxDeaths = 5

// attempts: under Rerun a tick is given up only when it has cost too many
// runners, when its window has ended, when a newer tick replaces it, or when it is of an older definition
// or paused now. A run that was stopped in good order costs no runner.
func attempts(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, n := range l.index.told[job] {
			t := l.termOf(job, n.outcome.Token)
			if t == nil || n.outcome.Request != "" || n.outcome.Status != store.Abandoned && n.outcome.Status != store.Stalled {
				continue
			}
			d, its := l.definition(n.write.Replica, job), l.definition(t.claim.Replica, job)
			if d == nil || its == nil || d.Every == 0 || d.Schedule != its.Schedule || d.Closed != its.Closed || d.Paused || d.Interrupted != soloist.Rerun ||
				d.StartingDeadline > 0 && n.write.Time.After(n.outcome.Tick.Add(d.StartingDeadline-l.doubt(n.write))) {
				continue
			}
			if d.Overlap == soloist.Replace && d.count(n.outcome.Tick, n.write.Time.Add(l.doubt(n.write))) > 0 {
				continue
			}
			if deaths := l.deaths(job, n.outcome.Tick, n.write.Time); deaths < maxDeaths {
				bad(n.write.Time, "%s gives tick %s of %s up (%s) after %d deaths", n.write.Replica, TimeOfDay(n.outcome.Tick), job, n.outcome.Reason, deaths)
			}
		}
	}
}

// deaths is how many runs of a tick had ended at a time otherwise than by a stop, or so that the log does not tell.
func (l *Log) deaths(job string, tick, at time.Time) (n int) {
	for _, t := range l.index.terms[job] {
		r := t.claim.Record
		yielded := l.stopped(t.claim) && l.askedToYield(t) && !l.ranOutOfTime(t) && !doubtful(t) && !l.lapsedBetween(t)
		if r.Run.Tick.Equal(tick) && r.Run.Request == "" && !yielded && !t.claim.Time.After(at) {
			n++
		}
	}
	return n
}

// lapsedBetween reports whether the last try of a term ended by itself or took too long, and the trust in its lease was over before its
// replica first sent the outcome: it waited for another try then, which the loss of the lease has ended.
func (l *Log) lapsedBetween(t *term) bool {
	r := t.last()
	if r == nil || r.Cause != "" && r.Cause != soloist.ErrTimeout.Error() || r.Note == "" {
		return false
	}
	var told time.Time
	for e := range l.leased(t.claim) {
		its := e.Op == "finish" && e.Record != nil && e.Record.Token == t.claim.Record.Token
		if its && (told.IsZero() || e.Sent.Before(told)) {
			told = e.Sent
		}
	}
	return !told.IsZero() && l.lapse(t.claim, told.Add(-1)).Before(told)
}

// ranOutOfTime reports whether a call of RunDue ended with the run of a term: that costs a runner, as the next
// call has no more time.
func (l *Log) ranOutOfTime(t *term) bool {
	return slices.ContainsFunc(l.of(t.claim.Job, Said), func(e *Event) bool {
		return e.Replica == t.claim.Replica && e.Token == t.claim.Record.Token && strings.Contains(e.Cause, "reason=out of time, ")
	})
}

// doubtful reports whether a run of a term saw its context end without a cause, as it returned: the log does not tell a
// stop from a loss then.
func doubtful(t *term) bool {
	return slices.ContainsFunc(t.tries, func(r *Event) bool { return r.Cause == "" && r.Note == "context canceled" })
}
