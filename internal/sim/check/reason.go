package check

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about what a record says became of a tick: each status and
// reason is judged by what happened.

// overlaps: "overlap" is the outcome of ticks that came due under a run of their
// job, from its claim until its outcome was written, and of no others.
func overlaps(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, n := range l.index.told[job] {
			d := l.definition(n.write.Replica, job)
			if n.outcome.Request != "" || n.outcome.Status != store.Skipped || n.outcome.Reason != "overlap" || d == nil || d.Every == 0 {
				continue
			}
			count, stray := 0, time.Time{}
			for tick := d.After(n.mark); !tick.After(n.outcome.Tick); tick = d.After(tick) {
				if !l.underRun(job, tick) {
					count, stray = count+1, tick
				}
			}
			if count > 0 {
				bad(n.write.Time, "%s calls %d ticks of %s up to %s overlap, and no run of it was under way", n.write.Replica, count, job, TimeOfDay(stray))
			}
		}
	}
}

// underRun reports whether a run of a job was under way when a tick came due. Its replica counts
// the end of a long run from the claim by a clock whose rate may be wrong.
func (l *Log) underRun(job string, tick time.Time) bool {
	for _, t := range l.index.terms[job] {
		if !tick.Before(l.due(t).Add(-t.doubt())) && !tick.After(t.over.Add(time.Second+t.over.Sub(t.sent)/50)) {
			return true
		}
	}
	return false
}

// underOutcome reports whether a replica tried to write the outcome of a run at t, which no other can
// know to be over before.
func (l *Log) underOutcome(job string, t time.Time) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(l.index.terms[job])), func(one *term) bool {
		return t.After(l.due(one)) && t.Before(one.gone())
	})
}

// reasons: why a tick was missed, skipped or abandoned is what happened.
func reasons(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, n := range l.index.told[job] {
			d := l.definition(n.write.Replica, job)
			if d == nil || d.Every == 0 || n.outcome.Tick.IsZero() {
				continue
			}
			if why := l.contradicts(job, d, n); why != "" {
				bad(n.write.Time, "%s writes that tick %s of %s is %s (%s): %s", n.write.Replica, TimeOfDay(n.outcome.Tick), job, n.outcome.Status, n.outcome.Reason, why)
			}
		}
	}
}

// contradicts is why an outcome is not what happened, empty if it is.
func (l *Log) contradicts(job string, d *Definition, n told) string {
	f, at := n.outcome, n.write.Time
	doubt := l.doubt(n.write)
	if why, about := l.contradictsBefore(d, n); about {
		return why
	}
	if c := l.ran(job, n); c != nil {
		return c.Replica + " had claimed tick " + TimeOfDay(c.Record.Run.Tick) + " of it"
	}
	switch {
	case f.Token != 0:
		return l.contradictsRun(job, d, n)
	case f.Reason == "the schedule changed":
		return unless(n.before.Definition.Spec != n.write.Record.Definition.Spec, "the definition is the same")
	case f.Request != "":
		return l.contradictsRequest(job, n)
	case f.Reason == "paused":
		// Where the schedule has changed in the pause, the range goes on after it.
		return unless(d.Paused || l.mayBePaused(job, f.Tick) || l.mayBePaused(job, n.before.Due), "it is not paused")
	case f.Reason == "a newer one was due":
		return unless(d.Missed != soloist.RunAll && d.count(f.Tick, at.Add(doubt)) > 0, "none was, or each has to be run")
	case f.Reason == "too many were due":
		return unless(d.Missed == soloist.RunAll && d.count(f.Tick, at.Add(doubt)) >= 100, "they were not")
	case f.Reason == "past the starting deadline":
		window, limited := d.window(f.Tick, 1)
		return unless(limited && !at.Before(f.Tick.Add(window-doubt)), "the window was open")
	case f.Reason == "overlap": // overlaps judges whether a run was under way
		return unless(d.Overlap == soloist.SkipOverlap || d.count(f.Tick, at.Add(doubt)) > 0, "it was the newest, which has to wait")
	case n.forGroup(d): // groupSkips judges that
		return ""
	}
	return "there is no such reason"
}

// ran is a claim of a tick of which an outcome says that no run was of it, nil if there is none.
func (l *Log) ran(job string, n told) *Event {
	if n.outcome.Token != 0 || n.outcome.Request != "" || l.spoiltBy(job, n.write.Time) {
		return nil
	}
	for _, c := range l.claimed(job) {
		tick := c.Record.Run.Tick
		if c.Record.Run.Request == "" && tick.After(n.mark) && !tick.After(n.outcome.Tick) && c.Time.Before(n.write.Time) && !l.forgot(job, c.Time, n.write.Time) {
			return c
		}
	}
	return nil
}

func unless(true bool, text string) string {
	if true {
		return ""
	}
	return text
}

// doubt is how wrong the clock of who sent a write may be.
func (l *Log) doubt(write *Event) time.Duration {
	if write.Record != nil {
		if t := l.termOf(write.Job, write.Record.Token); t != nil && t.claim.Lease == write.Lease {
			return t.doubt()
		}
	}
	for _, e := range l.of(write.Job, Request) {
		if e.Op == "acquire" && e.Lease == write.Lease && e.OK() && !e.Heard.IsZero() {
			t := term{acquire: e, asking: l.index.begins(e), sent: write.Sent}
			return t.doubt()
		}
	}
	return time.Minute
}

// contradictsRun is contradicts for the outcome of a run.
func (l *Log) contradictsRun(job string, d *Definition, n told) string {
	t := l.termOf(job, n.outcome.Token)
	if t == nil {
		return "" // claims has something to say
	}
	if isReplaced(&n.outcome) {
		return l.contradictsReplaced(t, d)
	}
	if n.outcome.Status == store.Cancelled && t.claim.Lease != n.write.Lease {
		return unless(l.cancelled(job, t, n.write.Time), "nobody has cancelled it") // its runner died and may not have known
	}
	if t.claim.Lease != n.write.Lease || t.claim.Replica != n.write.Replica {
		return l.contradictsDeath(t, d, n)
	}
	r := t.last()
	if r == nil {
		return unless(n.outcome.Status == store.Cancelled && l.cancelled(job, t, n.write.Time), "it did not run")
	}
	lost, stopped, stalled := store.ErrLost.Error(), soloist.ErrStopped.Error(), soloist.ErrStalled.Error()
	switch f := n.outcome; {
	case f.Status == store.Succeeded && (r.End.IsZero() || r.End.After(n.write.Time)):
		return "it had not returned"
	case f.Status == store.Succeeded:
		return unless(r.Note == "", "its last try ended so: "+r.Note)
	case f.Status == store.Failed:
		return unless(r.Note != "" && !strings.Contains(r.Note, NothingToDo), "its last try ended so: "+r.Note)
	case f.Status == store.Skipped:
		return unless(strings.Contains(r.Note, NothingToDo), "its last try ended so: "+r.Note)
	case f.Status == store.Stalled:
		// Another reason may come while the write that says so is under way, and a heartbeat too.
		silent, sent := l.believed(r).Sub(l.silentSince(r)), n.write.Sent
		if r.beat().After(sent) { // it was silent before that
			silent = max(silent, sent.Sub(l.stepBefore(r, sent)))
		}
		quiet := d.HeartbeatTimeout > 0 && (silent >= d.HeartbeatTimeout*9/10 || l.toldStalled(t, r.Cancelled))
		return unless(r.Cause == stalled || quiet || d.Pulse != NoPulse, "its context ended so: "+r.Cause)
	case f.Status == store.Cancelled:
		return unless(r.Cause == soloist.ErrCancelled.Error() || l.cancelled(job, t, n.write.Time), "nobody has cancelled it")
	case f.Status == store.Abandoned && strings.HasPrefix(strings.TrimPrefix(f.Reason, "out of time, "), "stopped"):
		return unless(r.Cause == stopped || l.askedToYield(t), "its replica was not to stop")
	case f.Status == store.Abandoned:
		return unless(strings.HasPrefix(f.Reason, lost), "there is no such reason")
	}
	return "there is no such status"
}

// silentSince is since when the replica of a run has had no heartbeat of it. If its machine was suspended just before the run began,
// that is when the machine was suspended. If that was just before its last step, the replica may have seen the silence before that
// step: it lasts since the last effect before the suspension then.
func (l *Log) silentSince(r *Event) time.Time {
	f := l.frozen(r.Replica, r.beat().Add(-noticed), r.beat())
	if f == nil {
		return r.beat()
	}
	return l.stepBefore(r, f.Time)
}

// stepBefore is the last effect of a run before t, or its begin.
func (l *Log) stepBefore(r *Event, t time.Time) time.Time {
	step := earlier(t, r.Time)
	for _, e := range between(l.of(r.Job, Effect), step, t) {
		if e.Token == r.Token {
			step = e.Time
		}
	}
	return step
}

// toldStalled reports whether the replica of a term sent, before then, that its run has
// stalled, whatever became of that request.
func (l *Log) toldStalled(t *term, then time.Time) bool {
	return slices.ContainsFunc(l.of(t.claim.Job, Request), func(e *Event) bool {
		return e.Lease == t.claim.Lease && e.Record != nil && e.Record.Run.Status == store.Stalled && e.Sent.Before(then)
	})
}

// askedToYield reports whether the replica of a term was to hand over since its
// claim, or since it had its lease, if that was acquired ahead: asked to stop, to step down, or on a call that ends.
// A stop that comes after its outcome has not ended it: that may be a lease that was lost between two tries.
func (l *Log) askedToYield(t *term) bool {
	return slices.ContainsFunc(l.of("", Stop), func(e *Event) bool { return e.Replica == t.claim.Replica && !e.Time.After(t.over) }) ||
		slices.ContainsFunc(l.of(t.claim.Job, Ordered), func(e *Event) bool {
			return e.Op == string(store.OrderStepDown) && e.Time.After(t.held()) && e.Time.Before(t.over)
		}) ||
		slices.ContainsFunc(l.of(t.claim.Job, Yield), func(e *Event) bool { return e.Time.After(t.held()) && e.Time.Before(t.over) }) ||
		slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == t.claim.Replica && u.Cause != "" }) ||
		t.claim.Record.Run.Request != ""
}

// cancelled reports whether an operator may have cancelled the run of a term before a time.
func (l *Log) cancelled(job string, t *term, by time.Time) bool {
	return slices.ContainsFunc(l.of(job, Ordered), func(o *Event) bool {
		return o.Op == string(store.OrderCancel) && (o.Token == t.claim.Record.Token || o.Heard.IsZero()) && o.Time.Before(by)
	})
}

// contradictsRequest is contradicts for a run that was ordered and not run.
func (l *Log) contradictsRequest(job string, n told) string {
	i := slices.IndexFunc(l.of(job, Ordered), func(o *Event) bool { return o.Request == n.outcome.Request })
	if i < 0 {
		return "nobody has ordered it"
	}
	o := l.of(job, Ordered)[i]
	switch n.outcome.Reason {
	case "overlap":
		return unless(l.underRun(job, o.Time) || l.underRun(job, o.Heard) || o.Heard.IsZero() || l.underOutcome(job, o.Time), "no run was under way")
	case "no replica could run it in time":
		return unless(o.End.IsZero() || !n.write.Time.Before(o.End.Add(-l.doubt(n.write))), "there was time")
	}
	return "there is no such reason"
}
