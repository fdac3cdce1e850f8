package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about when a run may start.

// window is how late a tick may start by its definition, for its first or a
// further attempt. It returns false where nothing limits that.
func (d *Definition) window(tick time.Time, attempt int) (time.Duration, bool) {
	switch {
	case d.StartingDeadline > 0:
		return d.StartingDeadline, true
	case attempt > 1 || d.Missed == soloist.RunAll:
		return 0, false
	case d.Missed == soloist.SkipMissed:
		return d.Lease, true
	case d.Follows != "":
		return 0, false // the next tick is due at no known instant
	}
	return d.After(tick).Sub(tick), true
}

// deadlines: no attempt of a tick starts after its starting deadline. The claim
// is decided before that, by a clock that may be wrong by what [term.doubt]
// says. It then takes four calls at most: sent, read back, and both once more,
// each for up to a sixth of the lease; and as long at most for a log that blocks.
func deadlines(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, e := range l.claimed(job) {
			d, t := l.definition(e.Replica, job), l.termOf(job, e.Record.Token)
			if d == nil || d.Every == 0 || e.Record.Run.Request != "" || t == nil {
				continue
			}
			window, limited := d.window(e.Record.Run.Tick, e.Record.Run.Attempt)
			if !limited {
				continue
			}
			sent := t.sent
			if f := l.frozen(e.Replica, t.sent.Add(-noticed), e.Time); f != nil {
				sent = earlier(sent, f.Time) // it may have decided before that
			}
			from, known := e.Record.Run.Tick, true
			if d.Follows != "" {
				from, known = l.awaited(d, from)
			}
			if !known {
				continue
			}
			by := from.Add(window + t.doubt())
			if sent.After(by) {
				bad(t.sent, "%s claims tick %s of %s, attempt %d, and its window ended at %s", e.Replica, TimeOfDay(e.Record.Run.Tick), job, e.Record.Run.Attempt, TimeOfDay(by))
			} else if first := t.first(); first != nil && first.Time.After(later(t.sent, t.tick()).Add(t.doubtAt(later(t.sent, t.tick()))+5*d.Lease/6+moment)) && l.frozen(e.Replica, t.sent, first.Time) == nil {
				bad(first.Time, "%s begins, and was claimed at %s", first.name(), TimeOfDay(t.sent))
			}
		}
	}
}

// first is the first try of a term, nil if none began.
func (t *term) first() *Event {
	if len(t.tries) == 0 {
		return nil
	}
	return t.tries[0]
}

// fresh: a replica that was asked to stop starts nothing that it had not started
// before, though it may have claimed it, but for a tick whose lease it had acquired when
// the others may have looked: they leave that tick to it.
func fresh(l *Log, bad report) {
	asked := map[string]*Event{}
	for _, e := range l.of("", Stop) {
		asked[e.Replica] = e
	}
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			if stop := asked[r.Replica]; stop != nil && r.Try == 1 && (r.Request == "" || r.backfills()) && l.begun(&r).After(stop.Time.Add(moment)) && !l.promised(stop, &r) {
				bad(r.Time, "%s begins, and its replica was asked to stop at %s", r.name(), TimeOfDay(stop.Time))
			}
		}
	}
}

// promised reports whether a replica that stops may begin a run within its grace: it had the
// lease before, and the stop came when the others may have looked.
func (l *Log) promised(stop, r *Event) bool {
	d, t := l.definition(r.Replica, r.Job), l.termOf(r.Job, r.Token)
	if d == nil || t == nil || t.acquire == nil || r.Tick.IsZero() || !t.acquire.Sent.Before(stop.Time) {
		return false
	}
	doubt := t.doubtAt(stop.Time)
	looked := r.Tick.Add(-d.lead()*29/40 - doubt) // 3/5 and 1/8
	return stop.Time.After(looked) && t.acquire.Time.Before(r.Tick.Add(doubt)) && !l.begun(r).After(stop.End.Add(moment))
}

// begun is when a run began for its replica: when it said so, though the log may
// have kept it from its start.
func (l *Log) begun(r *Event) time.Time {
	for _, e := range slices.Backward(between(l.of(r.Job, Said), time.Time{}, r.Time.Add(1))) {
		if e.Replica == r.Replica && e.Token == r.Token && e.Note == "run started" {
			return e.Time
		}
	}
	if d := l.definition(r.Replica, r.Job); d != nil && l.blocked(r.Replica, r.Time) {
		return r.Time.Add(-d.Lease / 6) // the line was lost in a crash
	}
	return r.Time
}

// blocked reports whether the log of a replica took no line at t, or just before.
func (l *Log) blocked(replica string, t time.Time) bool {
	return slices.ContainsFunc(l.index.blocks[replica], func(e *Event) bool {
		return e.Time.Before(t) && e.End.Add(moment).After(t)
	})
}

// tries: a tick is tried no more often than its definition says, and a further
// try begins no earlier than half the pause after the one before: the other half
// is left to chance.
func tries(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, t := range l.index.terms[job] {
			d := l.definition(t.claim.Replica, job)
			if d == nil || d.Every == 0 {
				continue
			}
			pause := d.Backoff
			if pause == 0 {
				pause = 10 * time.Second
			}
			before := map[time.Time]*Event{} // a claim may have several ticks of a backfill
			for _, r := range t.tries {
				if r.Try > max(d.MaxTries, 1) {
					bad(r.Time, "%s is try %d of %d", r.name(), r.Try, d.MaxTries)
				}
				if last := before[r.Tick]; last != nil && r.Time.Sub(last.End) < pause/2 && l.frozen(r.Replica, t.claim.Time, r.Time) == nil {
					bad(r.Time, "%s begins again after %s", r.name(), r.Time.Sub(last.End))
				}
				before[r.Tick] = r
			}
		}
	}
}

// rests: a replica leaves a singleton alone for its Backoff after a run of its
// own whose outcome it has told, also after one that has stalled.
func rests(l *Log, bad report) {
	for _, job := range l.index.jobs {
		last := map[string]Event{}
		for _, r := range l.runs(job) {
			d, before := l.definition(r.Replica, job), last[r.Replica]
			last[r.Replica] = r
			if d == nil || d.Every > 0 || before.Replica == "" || before.End.IsZero() {
				continue
			}
			if outcome := l.outcomeOf(&before); d.Spread() && outcome != store.Failed && outcome != store.Stalled { // it was handed over
				continue
			}
			pause := d.rest()
			if r.Time.Sub(before.End) < pause*9/10 && l.toldOutcome(job, before.Token) && l.frozen(r.Replica, before.End, r.Time) == nil {
				bad(r.Time, "%s begins %s after its run before, and rests for %s", r.name(), r.Time.Sub(before.End), pause)
			}
		}
	}
}

// rest is the Backoff of a singleton.
func (d *Definition) rest() time.Duration { return cmp.Or(d.Backoff, 5*time.Second) }

// toldOutcome reports whether the replica of a run wrote what became of it, and
// knows so: an answer may be lost, and another replica be next before it has read.
func (l *Log) toldOutcome(job string, token int64) bool {
	t := l.termOf(job, token)
	refused := t != nil && slices.ContainsFunc(l.of(job, Said), func(e *Event) bool {
		return e.Replica == t.claim.Replica && e.Token == token && strings.HasPrefix(e.Note, "the outcome was refused")
	})
	return t != nil && !refused && slices.ContainsFunc(l.writes(job), func(e *Event) bool {
		return e.Op == "finish" && e.Lease == t.claim.Lease && e.Record != nil && e.Record.Token == token && !e.Record.Run.Finished.IsZero()
	})
}
