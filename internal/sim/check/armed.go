package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about what becomes of a claim that was written before its tick, and of a
// lease that was acquired before it.

// spent: what takes a claim back leaves its tick to others as it was before, and its token to
// nobody.
func spent(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, w := range l.index.returned[job] {
			claim := l.lastSent(w)
			if claim == nil {
				continue
			}
			r, c := w.Record, claim.Record
			switch open := c.Run.Request == "" && !c.Run.Tick.IsZero() && c.Run.Attempt == 1; {
			case r.Token < c.Token:
				bad(w.Time, "%s takes the claim of %s with token %d back and leaves token %d", w.Replica, job, c.Token, r.Token)
			case mayRun(r):
				bad(w.Time, "%s takes the claim of %s with token %d back, and its record says %s", w.Replica, job, c.Token, r.Run.Status)
			case open && (!r.Watermark.Before(c.Run.Tick) || r.Run.Tick.Equal(c.Run.Tick)):
				bad(w.Time, "%s takes the claim of %s with token %d back, and tick %s is not open", w.Replica, job, c.Token, TimeOfDay(c.Run.Tick))
			case slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Token == c.Token }):
				bad(w.Time, "%s takes the claim of %s with token %d back, and tells an outcome of it", w.Replica, job, c.Token)
			}
		}
	}
}

// lastSent is the last claim that was sent under the lease of a request before it, whatever
// the answer.
func (l *Log) lastSent(e *Event) (claim *Event) {
	for _, c := range l.of(e.Job, Request) {
		if c.Op == "claim" && c.Lease == e.Lease && c.Record != nil && c.Sent.Before(e.Sent) && (claim == nil || c.Record.Token >= claim.Record.Token) {
			claim = c
		}
	}
	return claim
}

// quietAhead: a claim ahead settles nothing, is written under no run, and until its tick
// nobody settles it or claims in its place.
func quietAhead(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, c := range l.armed(job) {
			l.settlesNothing(c, bad)
			l.underNoRun(c, bad)
			l.leftAlone(c, bad)
		}
	}
}

// settlesNothing checks that a claim ahead tells no outcome but that of a run under its own lease.
func (l *Log) settlesNothing(c *Event, bad report) {
	for _, n := range l.index.told[c.Job] {
		t := l.termOf(c.Job, n.outcome.Token)
		if own := t != nil && t.claim.Lease == c.Lease; n.write == c && !own {
			bad(c.Time, "%s claims tick %s of %s ahead and settles tick %s", c.Replica, TimeOfDay(c.Record.Run.Tick), c.Job, TimeOfDay(n.outcome.Tick))
		}
	}
}

// underNoRun checks that the run before a claim ahead is over.
func (l *Log) underNoRun(c *Event, bad report) {
	writes := l.writes(c.Job)
	i := slices.Index(writes, c)
	if i > 0 && mayRun(writes[i-1].Record) && writes[i-1].Record.Token != c.Record.Token {
		bad(c.Time, "%s claims tick %s of %s ahead, and the record said %s of token %d", c.Replica, TimeOfDay(c.Record.Run.Tick), c.Job, writes[i-1].Record.Run.Status, writes[i-1].Record.Token)
	}
	for _, r := range l.runs(c.Job) {
		if r.Token == c.Record.Token || !r.Time.Before(c.Sent) || r.Request != "" {
			continue
		}
		if r.Replica == c.Replica && (r.End.IsZero() || r.End.After(c.Sent)) {
			bad(c.Time, "%s claims tick %s of %s ahead, and %s is under way", c.Replica, TimeOfDay(c.Record.Run.Tick), c.Job, r.name())
		}
	}
}

// leftAlone checks that no holder of another lease writes of a claim ahead before its tick
// that it is over, or claims in its place.
func (l *Log) leftAlone(c *Event, bad report) {
	for _, e := range l.writes(c.Job) {
		r := e.Record
		if !e.Time.After(c.Time) {
			continue
		}
		if r == nil || e.Replica == Operator || e.Op == "create" || e.Op == "take back" && e.Lease == c.Lease || !e.Sent.Before(c.Record.Run.Tick) {
			return
		}
		if e.Lease != c.Lease && (r.Token != c.Record.Token || !mayRun(r) || !r.Watermark.Before(c.Record.Run.Tick)) && e.Sent.Before(c.Record.Run.Tick.Add(-l.doubt(e))) {
			bad(e.Time, "%s writes %s of %s, and the claim of tick %s by %s is not due", e.Replica, describe(r), c.Job, TimeOfDay(c.Record.Run.Tick), c.Replica)
			return
		}
	}
}

// stopsAhead: a replica that is asked to stop after it has claimed ahead takes the claim back,
// or runs it within its grace.
func stopsAhead(l *Log, bad report) {
	for _, stop := range l.of("", Stop) {
		for _, job := range l.index.jobs {
			for _, c := range l.armed(job) {
				if c.Replica == stop.Replica && c.Sent.Before(stop.Time) && c.Record.Run.Tick.After(stop.Time) {
					l.stopped1(stop, c, bad)
				}
			}
		}
	}
}

// stopped1 judges one claim ahead of a replica that stops.
func (l *Log) stopped1(stop, c *Event, bad report) {
	token, by := c.Record.Token, later(c.Record.Run.Tick, stop.End).Add(5*time.Second)
	for _, r := range l.runs(c.Job) {
		if r.Token == token && r.Replica == c.Replica {
			if late := r.Time.Sub(stop.End); late > moment && r.Time.After(stop.Time) && l.frozen(c.Replica, stop.Time, r.Time) == nil && !l.blocked(c.Replica, r.Time) {
				bad(r.Time, "%s begins %s after the grace of its replica", r.name(), late)
			}
			return
		}
	}
	back := slices.ContainsFunc(l.index.returned[c.Job], func(w *Event) bool { return w.Lease == c.Lease && w.Record.Token >= token })
	if !back && !l.troubled(c, by) {
		bad(stop.Time, "%s is asked to stop, and neither runs tick %s of %s nor takes its claim back", c.Replica, TimeOfDay(c.Record.Run.Tick), c.Job)
	}
}

// leavesNoLease: a replica that has stopped has released each lease under which nothing of it
// was to be told, also one that it had acquired before a tick: the others wait for none.
func leavesNoLease(l *Log, bad report) {
	for _, gone := range l.of("", Gone) {
		for _, job := range l.index.jobs {
			a := l.unreleased(job, gone)
			if a == nil || l.troubled(a, gone.Time) || l.heldOff(a) || !l.asked(gone.Replica, gone.Time) {
				continue
			}
			bad(gone.Time, "%s is gone and has not released the lease of %s that it acquired at %s", gone.Replica, job, TimeOfDay(a.Time))
		}
	}
}

// unreleased is the acquisition of the last lease of a replica that has stopped, nil if that was
// released, or a claim may stand under it.
func (l *Log) unreleased(job string, gone *Event) (a *Event) {
	for _, e := range l.of(job, Request) {
		switch {
		case a != nil && e.Op == "replace" && e.OK() && e.Time.After(a.Time): // it was ended by another
			a = nil
		case e.Replica != gone.Replica:
		case e.Op == "acquire" && e.OK() && !e.Heard.IsZero():
			a = e
		case a != nil && e.Lease == a.Lease && (e.Op == "release" || e.Op == "claim"):
			a = nil
		}
	}
	return a
}

// heldOff reports whether a replica said under a lease that it held off: that lease has to expire.
func (l *Log) heldOff(a *Event) bool {
	return slices.ContainsFunc(l.of(a.Job, Said), func(e *Event) bool {
		return e.Replica == a.Replica && !e.Time.Before(a.Sent) && strings.HasPrefix(e.Note, "the last runner's lease did not run out")
	})
}

// troubled reports whether anything befell the claimer of c, or the entry, until a time.
func (l *Log) troubled(c *Event, to time.Time) bool {
	if crash := l.crashed(c.Replica); !crash.IsZero() && crash.Before(to) || l.frozen(c.Replica, c.Sent.Add(-noticed), to) != nil {
		return true
	}
	documents := slices.DeleteFunc(slices.Clone(l.of("", Request)), func(e *Event) bool { return !e.OfDocument() }) // who cannot read the orders begins nothing
	for _, e := range slices.Concat(l.of(c.Job, Request), documents) {
		ill := e.Replica == c.Replica && (e.Cause != "" || e.Heard.IsZero()) || e.Replica == Operator && e.Op != "read" && !e.OfDocument()
		over := e.Time
		if e.OfDocument() { // one that gets no answer keeps those waiting that need the orders: see ordersOfDead of the runner
			over = later(over, e.Done)
		}
		if ill && e.Sent.Before(to) && over.After(c.Sent.Add(-time.Second)) {
			return true
		}
	}
	during := func(e *Event) bool { return e.Time.After(c.Sent.Add(-time.Minute)) && e.Time.Before(to) }
	return slices.ContainsFunc(slices.Concat(l.of(c.Job, Deleted), l.of(c.Job, Corrupted), l.of("", Deleted)), during)
}

// diesArmed: the tick of a claim ahead that was not taken back is no tick that nobody had: its
// outcome is that of a run.
func diesArmed(l *Log, bad report) {
	for _, job := range l.index.jobs {
		armed := map[int64]*Event{} // by tick
		for _, c := range l.claimed(job) {
			if ahead(c) {
				armed[c.Record.Run.Tick.UnixNano()] = c
			}
		}
		for _, n := range l.index.told[job] {
			f := n.outcome
			c := armed[f.Tick.UnixNano()]
			if f.Request == "" && f.Token == 0 && f.Count <= 1 && c != nil && n.write.Time.After(c.Time) && len(l.of(job, Corrupted)) == 0 && !l.forgot(job, c.Time, n.write.Time) {
				bad(n.write.Time, "%s writes that tick %s of %s is %s (%s), and %s had claimed it with token %d", n.write.Replica, TimeOfDay(f.Tick), job, f.Status, f.Reason, c.Replica, c.Record.Token)
			}
		}
	}
}

// unclaimed: the tick before which a replica acquired the lease and died is claimed by another
// one, or a later tick is, when that lease has run out and another has looked. This is so
// where nothing else happens meanwhile.
func unclaimed(l *Log, bad report) {
	for _, crash := range l.of("", Crash) {
		for _, job := range l.index.jobs {
			a, d := l.heldUnclaimed(job, crash), l.definition(crash.Replica, job)
			if a == nil || d == nil || d.Every == 0 || d.Paused {
				continue
			}
			tick := d.After(a.Time)
			length := max(a.Span, l.longestOf(job))
			by := tick.Add(length + length/3 + 300*time.Millisecond + 3*roundTrip)
			window, limited := d.window(tick, 1)
			ahead := tick.Sub(a.Time) <= d.lead()+2*time.Second && tick.After(crash.Time)
			if !ahead || limited && tick.Add(window).Before(by) && d.Every > window || !l.calm(a, crash.Time, by) || l.orderedAround(job, crash.Time, by) || by.After(l.end()) {
				continue
			}
			if d.Group != "" && !l.heirWithSlot(a, by) {
				continue
			}
			if !slices.ContainsFunc(l.claimed(job), func(c *Event) bool { return !c.Record.Run.Tick.Before(tick) && !c.Time.After(by) }) {
				bad(by, "%s crashed at %s with the lease of %s, and its tick %s is not claimed", crash.Replica, TimeOfDay(crash.Time), job, TimeOfDay(tick))
			}
		}
	}
}

// heirWithSlot reports whether a replica takes over the job of a group whose lease was acquired last by one
// that has died, and found a slot free from when that lease could have run out: the dead one may have
// had a slot too, whose lease may be longer.
func (l *Log) heirWithSlot(a *Event, by time.Time) bool {
	free := a.Time.Add(a.Span)
	return slices.ContainsFunc(l.of("", Up), func(u *Event) bool {
		if !l.heir(u, a, by) {
			return false
		}
		d := l.definition(u.Replica, a.Job)
		return l.fullUntil(d, free, by).IsZero() && !l.slotsHindered(d, u.Replica, free, by)
	})
}

// longestOf is the longest lease that a replica may have of a job.
func (l *Log) longestOf(job string) (longest time.Duration) {
	for replica := range l.Fleet {
		if d := l.definition(replica, job); d != nil {
			longest = max(longest, d.Lease)
		}
	}
	return longest
}

// heldUnclaimed is the acquisition of the lease that a replica had, without a claim, when it
// crashed, nil if there was none.
func (l *Log) heldUnclaimed(job string, crash *Event) (a *Event) {
	for _, e := range l.of(job, Request) {
		switch {
		case e.Time.After(crash.Time) || !e.OK():
		case e.Op == "acquire":
			if a = nil; e.Replica == crash.Replica {
				a = e
			}
		case a != nil && e.Lease == a.Lease && (e.Op == "claim" || e.Op == "release"), e.Op == "break", e.Op == "replace":
			a = nil
		}
	}
	return a
}
