package check

import "time"

// The invariants about runs that beat: see internal/plan/beat.go.

// beats is the length of the beat of the run that a write claims, or tells about; zero: it has
// none.
func (e *Event) beats() time.Duration {
	if e.Record == nil {
		return 0
	}
	return e.Record.Beats()
}

// brief reports whether beats are so short that a call may take too long for one where nothing
// goes wrong.
func (d *Definition) brief() bool { return d.Beat > 0 && d.Beat/6 < roundTrip }

// beatsTo is until when a run can be trusted by its beats, by what was applied until t. It is
// the last write under its lease that was applied, counted from when that was sent for the first
// time. It returns false if the run does not beat.
func (l *Log) beatsTo(claim *Event, t time.Time) (until time.Time, ok bool) {
	length := claim.beats()
	if length == 0 {
		return time.Time{}, false
	}
	d := length - length/100 - length/6
	d -= time.Duration(int64(d) / 1_000_000 * l.Drift[claim.Replica])
	first := map[string]time.Time{} // by nonce: the first sending of a write
	for _, e := range l.of(claim.Job, Request) {
		if !e.Writes() || e.Lease != claim.Lease || e.Record == nil || e.Record.Token != claim.Record.Token || e.Sent.After(t) {
			continue
		}
		if at, sent := first[e.Record.Writer]; !sent || e.Sent.Before(at) {
			first[e.Record.Writer] = e.Sent
		}
	}
	for _, e := range l.of(claim.Job, Request) {
		if e.OK() && e.Writes() && e.Lease == claim.Lease && e.Record != nil && !e.Time.After(t) {
			if at, ours := first[e.Record.Writer]; ours && at.Add(d).After(until) {
				until = at.Add(d)
			}
		}
	}
	return until, true
}

// silence: a lease is broken by a replica only if no write was applied under it for as long as
// its run beats, and no run under it has a living context. The record that the breaker went by
// does not count here.
func silence(l *Log, bad report) {
	for _, job := range l.index.entries {
		var last *Event
		for _, e := range l.of(job, Request) {
			if !e.OK() {
				continue
			}
			if e.Writes() {
				last = e
			}
			if e.Op != "replace" {
				continue
			}
			if last == nil || last.beats() == 0 {
				bad(e.Time, "%s breaks the lease of %s, whose run does not beat", e.Replica, job)
				continue
			}
			quiet, length := e.Time.Sub(last.Sent), last.beats()
			if least := length - length/50; quiet < least {
				bad(e.Time, "%s breaks the lease of %s %s after its last beat was sent, and the length of that is %s", e.Replica, job, quiet, length)
			}
			l.aliveAt(job, last, e, bad)
		}
	}
}

// aliveAt reports runs of a token whose context lives when their lease is broken. A suspended
// replica does nothing.
func (l *Log) aliveAt(job string, last, broken *Event, bad report) {
	for _, r := range l.runs(job) {
		end := l.believed(&r)
		if r.Token != last.Record.Token || !l.begun(&r).Before(broken.Time) || !end.After(broken.Time) {
			continue
		}
		if f := l.frozen(r.Replica, last.Sent, end); f != nil && !f.Time.After(broken.Time) && !end.After(f.End.Add(noticed)) {
			continue
		}
		bad(broken.Time, "%s breaks the lease of %s, whose context lives until %s", broken.Replica, r.name(), TimeOfDay(end))
	}
}
