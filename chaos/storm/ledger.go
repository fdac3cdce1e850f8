//go:build unix

package main

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// tokens: those that the service takes never get smaller, and a run is told of
// and ended under the lease of its claim alone.
func (j *judge) tokens(job string) {
	var last, claim *Write
	for _, w := range j.writes[job] {
		r := w.Record
		switch {
		case last == nil:
		case r.Token < last.Record.Token:
			j.bad("%s: a write of %s with token %d was accepted at %s after %d", job, w.Replica, r.Token, clock(w.At), last.Record.Token)
		case r.Token > last.Record.Token:
			claim = w
		case claim != nil && w.Lease != claim.Lease && (r.Run.Status == store.Running || last.Record.Run.Status == store.Running && ended(r.Run.Status)):
			j.bad("%s: a write of %s for token %d was accepted at %s, under another lease than the claim of %s", job, w.Replica, r.Token, clock(w.At), claim.Replica)
		}
		last = w
	}
}

// ended reports whether s is for a run's own replica to say.
func ended(s store.Status) bool {
	return s == store.Succeeded || s == store.Failed || s == store.Stalled || s == store.Skipped
}

// claims: an attempt at a tick is claimed once, and after the attempt before it. A claim that is taken
// back before its run began counts for none.
func (j *judge) claims(job string) {
	seen := map[start]*Write{}
	var last, before *Write
	for _, w := range j.writes[job] {
		r := w.Record
		if last != nil && takesBack(w, last) {
			if j.began(job, r.Token) {
				j.bad("%s: the claim with token %d was taken back at %s, and its run had begun", job, r.Token, clock(w.At))
			}
			delete(seen, start{tick: last.Record.Run.Tick.UnixNano(), attempt: last.Record.Run.Attempt})
			last = before
			continue
		}
		if r.Run.Status != store.Running || r.Run.Tick.IsZero() || last != nil && r.Token <= last.Record.Token {
			continue
		}
		this := start{tick: r.Run.Tick.UnixNano(), attempt: r.Run.Attempt}
		if old := seen[this]; old != nil {
			j.bad("%s@%s attempt %d: claimed by %s at %s and by %s at %s", job, clock(r.Run.Tick), r.Run.Attempt, old.Replica, clock(old.At), w.Replica, clock(w.At))
		}
		if r.Run.Attempt > 1 && (last == nil || last.Record.Run.Attempt != r.Run.Attempt-1 || !last.Record.Run.Tick.Equal(r.Run.Tick)) {
			j.bad("%s@%s attempt %d: claimed by %s at %s, and attempt %d is not the claim before", job, clock(r.Run.Tick), r.Run.Attempt, w.Replica, clock(w.At), r.Run.Attempt-1)
		}
		seen[this], last, before = w, w, last
	}
}

// takesBack reports whether w, of the same claim, puts the run before in its place.
func takesBack(w, claim *Write) bool {
	r, c := &w.Record, &claim.Record
	return w.Lease == claim.Lease && r.Token == c.Token && (r.Run.Attempt != c.Run.Attempt || !r.Run.Tick.Equal(c.Run.Tick))
}

// began reports whether the run of a token has said that it began.
func (j *judge) began(job string, token int64) bool {
	return slices.ContainsFunc(j.effects[job], func(e *Effect) bool { return e.What == Started && e.Token == token })
}

// ledger: the watermark never goes back, and each tick that it passes has one
// outcome, alone or in a range.
func (j *judge) ledger(job string) {
	var last *store.Record
	for _, w := range j.writes[job] {
		r := &w.Record
		switch {
		case w.Lease == "":
		case last == nil:
			j.bad("%s: nobody has made the entry", job)
		case r.Watermark.Before(last.Watermark):
			j.bad("%s: %s moves the watermark back from %s to %s", job, w.Replica, clock(last.Watermark), clock(r.Watermark))
		case slices.ContainsFunc(w.News, ofTick) || !r.Watermark.Equal(last.Watermark):
			j.outcomes(job, w, last)
		}
		last = r
	}
}

// ofTick is false for the outcome of a singleton's run.
func ofTick(f store.Outcome) bool { return !f.Tick.IsZero() }

// outcomes checks what one write says of the ticks between two watermarks.
func (j *judge) outcomes(job string, w *Write, last *store.Record) {
	mark, every := last.Watermark, j.every[last.Definition.Spec]
	if every == 0 || j.every[w.Record.Definition.Spec] == 0 {
		j.bad("%s: %s writes a spec that no version has", job, w.Replica)
		return
	}
	for _, f := range slices.Backward(w.News) {
		switch n := count(every, mark, f.Tick); {
		case f.From.IsZero() && n == 0:
			j.bad("%s@%s: %s by %s, and it had its fate", job, clock(f.Tick), f.Status, w.Replica)
		case f.From.IsZero() && n > 1:
			j.bad("%s: %d ticks between %s and %s have no fate", job, n-1, clock(mark), clock(f.Tick))
		case !f.From.IsZero() && !f.From.Equal(mark):
			j.bad("%s: the range after %s does not begin at the watermark %s", job, clock(f.From), clock(mark))
		case !f.From.IsZero() && f.Count > 0 && f.Count != n:
			j.bad("%s: the range from %s to %s counts %d ticks of %d", job, clock(f.From), clock(f.Tick), f.Count, n)
		}
		if adopted(f) {
			every = j.every[w.Record.Definition.Spec]
		}
		if f.Tick.After(mark) {
			mark = f.Tick
		}
	}
	if !mark.Equal(w.Record.Watermark) {
		j.bad("%s: the watermark is at %s, and the outcomes end at %s", job, clock(w.Record.Watermark), clock(mark))
	}
}

// adopted reports whether f is about the ticks of a definition that is no more:
// a range that is not counted.
func adopted(f store.Outcome) bool { return !f.From.IsZero() && f.Count == 0 }

// count is the number of ticks after a, up to b.
func count(every time.Duration, a, b time.Time) int {
	return max(0, int(b.UnixNano()/int64(every)-a.UnixNano()/int64(every)))
}

// news is what stands in front of the old history in the new one, of which the
// oldest may have been cut off. The end of a run may be told later.
func news(old, now []store.Outcome) []store.Outcome {
	same := func(a, b store.Outcome) bool {
		a.End, b.End = time.Time{}, time.Time{}
		return a == b
	}
	for n := range now {
		rest := now[n:]
		if len(rest) <= len(old) && slices.EqualFunc(rest, old[:len(rest)], same) {
			return slices.Clone(now[:n])
		}
	}
	return slices.Clone(now)
}
