package check

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about runs that were claimed before their tick, or whose lease was: they
// begin neither early, nor on a claim that is not theirs any more.

// longestLead is how long before a tick its lease is acquired at most.
const longestLead = 2 * time.Second

// lead is how long before a tick a replica with this definition acquires the lease.
func (d *Definition) lead() time.Duration { return min(longestLead, d.Lease/4) }

// ahead reports whether a claim was written before its tick, to be run at the tick without a
// further call.
func ahead(claim *Event) bool { return claim.Record.Run.Armed }

// armed returns all claims ahead of a job in the order of the service, also those that were
// taken back.
func (l *Log) armed(job string) (all []*Event) {
	for i, e := range l.writes(job) {
		again := i > 0 && l.writes(job)[i-1].Record != nil && e.Record != nil && l.writes(job)[i-1].Record.Token == e.Record.Token
		if e.Op == "claim" && e.Record != nil && ahead(e) && !again {
			all = append(all, e)
		}
	}
	return all
}

// due is when a run may begin by its claim: at its tick, if that was claimed before.
func (l *Log) due(t *term) time.Time {
	if ahead(t.claim) {
		return later(l.decided(t), t.tick())
	}
	return l.decided(t)
}

// provablyEarly: no run starts before its tick by what the answers under its own lease prove
// of the service's clock: a date, the second that it leaves out, and what the replica's
// clock may have lagged since.
func provablyEarly(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			claim := l.claimOf(job, r.Token)
			if claim == nil || r.Tick.IsZero() || r.Request != "" || r.Try != 1 || !r.Time.Before(r.Tick) {
				continue
			}
			from := claim.Sent // an answer to the claim may prove that it was early
			if ahead(claim) {
				from = l.begun(&r)
			}
			for _, e := range l.of(job, Request) {
				dated := e.Lease == claim.Lease && e.Replica == r.Replica && e.OK() && e.Cause == "" && !e.Heard.IsZero() && e.Heard.Before(from)
				if !dated || l.acquiredAgain(e) {
					continue
				}
				sent := e.Sent
				if f := l.frozen(r.Replica, e.Sent.Add(-moment), e.Sent); f != nil {
					sent = f.Time // the call began before the suspension, perhaps
				}
				latest := e.Time.Truncate(time.Second).Add(time.Second + r.Time.Sub(sent)*51/50 + slack)
				if latest.Before(r.Tick) {
					bad(r.Time, "%s begins %s early: the %s at %s proves that", r.name(), r.Tick.Sub(r.Time), e.Op, TimeOfDay(e.Time))
					break
				}
			}
		}
	}
}

// saidArmed: a record says that its run begins at its tick only if the job is claimed ahead,
// and then says so.
func saidArmed(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, e := range l.claimed(job) {
			d, t := l.definition(e.Replica, job), l.termOf(job, e.Record.Token)
			if d == nil || t == nil || e.Record.Run.Request != "" {
				continue
			}
			switch early := e.Record.Run.Tick.Sub(t.sent); {
			case ahead(e) && (!d.ClaimAhead || early < -t.doubt()):
				bad(e.Time, "%s writes that tick %s of %s was claimed ahead, and it was not", e.Replica, TimeOfDay(e.Record.Run.Tick), job)
			case !ahead(e) && !t.tick().IsZero() && early > t.doubt():
				bad(e.Time, "%s claims tick %s of %s %s before it and does not say so", e.Replica, TimeOfDay(e.Record.Run.Tick), job, early)
			case ahead(e) && early > d.lead()+2*t.doubt(): // by what it knew before it acquired the lease
				bad(e.Time, "%s claims tick %s of %s %s before it", e.Replica, TimeOfDay(e.Record.Run.Tick), job, early)
			}
		}
	}
}

// superseded: no run begins on a claim that its replica has begun to take back, whose lease a
// renewal has shown to be lost, or after which another was claimed.
func superseded(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			if r.Try != 1 {
				continue
			}
			begun := l.begun(&r)
			if why, at := l.overtaken(&r, begun); why != "" && l.frozen(r.Replica, begun.Add(-moment), r.Time) == nil {
				bad(r.Time, "%s begins, and %s at %s", r.name(), why, TimeOfDay(at))
			}
		}
	}
}

// overtaken says what has ended the claim of a run before that began, and when. It is empty if
// nothing has.
func (l *Log) overtaken(r *Event, begun time.Time) (why string, at time.Time) {
	takesBack := func(e *Event) bool {
		return e.Op == "take back" && e.Replica == r.Replica && e.Record != nil && e.Record.Token == r.Token && e.Sent.Before(begun)
	}
	const taken = "its claim was taken back"
	claim := l.claimOf(r.Job, r.Token)
	if claim == nil {
		if all := l.of(r.Job, Request); slices.ContainsFunc(all, takesBack) {
			return taken, all[slices.IndexFunc(all, takesBack)].Time
		}
		return "", at
	}
	// A claim that was never applied leaves its token to another one under another lease.
	for e := range l.leased(claim) {
		switch {
		case takesBack(e):
			return taken, e.Time
		case e.Op == "renew" && refused(e) && !e.Heard.IsZero() && e.Heard.Before(begun) && e.Heard.After(claim.Sent):
			return "the service has refused a renewal", e.Time
		}
	}
	for _, e := range between(l.writes(r.Job), claim.Time, begun) {
		if e.Op == "claim" && e.Replica != Operator && e.Record != nil && e.Record.Token > r.Token &&
			!l.strange(r.Job, r, e) && !l.putBack(e) && !l.forgot(r.Job, claim.Time, begun) {
			return e.Replica + " has claimed with token " + strconv.FormatInt(e.Record.Token, 10), e.Time
		}
	}
	return "", at
}

// unbroken: no run begins on a claim during whose wait the trust in its lease has ended, also
// if a later renewal has been answered.
func unbroken(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			claim := l.claimOf(job, r.Token)
			if claim == nil || r.Try != 1 || claim.Replica != r.Replica {
				continue
			}
			begun := l.begun(&r)
			if at := l.distrusted(claim, begun); !at.IsZero() && l.frozen(r.Replica, begun.Add(-moment), r.Time) == nil {
				bad(r.Time, "%s begins, and the trust in its lease had ended at %s", r.name(), TimeOfDay(at))
			}
		}
	}
}

// distrusted is when the trust in the lease of a claim ended first until a time, zero if it
// did not.
func (l *Log) distrusted(claim *Event, to time.Time) time.Time {
	var answers []*Event
	var from time.Time // an acquisition without an answer may be sent again
	if t := l.termOf(claim.Job, claim.Record.Token); t != nil && t.acquire != nil {
		from = t.acquire.Heard
	}
	for e := range l.leased(claim) {
		if e.Replica == claim.Replica && e.OK() && !e.Heard.IsZero() && !e.Heard.After(to) && (e.Op == "acquire" || e.Op == "renew") && e.answered() && !e.Heard.Before(from) {
			answers = append(answers, e)
		}
	}
	slices.SortFunc(answers, func(a, b *Event) int { return cmp.Or(a.Heard.Compare(b.Heard), a.Sent.Compare(b.Sent)) })
	for i := range answers {
		next := to
		if i+1 < len(answers) {
			next = answers[i+1].Heard
		}
		if until := l.trusted(answers[:i+1], claim.Replica, next); next.After(until.Add(slack)) {
			return until
		}
	}
	return time.Time{}
}

// keptUntil is until when a replica may keep its lease after a write that has ended all that
// was to do: until the next tick, if that is so near that it would acquire the lease again.
func (l *Log) keptUntil(w *Event) time.Time {
	d := l.definition(w.Replica, w.Job)
	if d == nil || d.Every == 0 {
		return w.Heard
	}
	next := d.After(w.Heard)
	if doubt := l.doubt(w); next.Sub(w.Heard) <= d.lead()+doubt {
		return next.Add(doubt)
	}
	return w.Heard
}

// mayRun reports whether a record says that a run is under way, or about to be.
func mayRun(r *store.Record) bool {
	return r != nil && (r.Run.Status == store.Running || r.Run.Status == store.Stalled && r.Run.Finished.IsZero())
}

// acquiredAgain reports whether an acquisition was sent again under its id: its answer came too late for its replica, as in a
// suspension, which knows nothing by it.
func (l *Log) acquiredAgain(e *Event) bool {
	return e.Op == "acquire" && slices.ContainsFunc(l.of(e.Job, Request), func(o *Event) bool {
		return o.Op == "acquire" && o.Lease == e.Lease && o.Replica == e.Replica && o.Sent.After(e.Sent)
	})
}
