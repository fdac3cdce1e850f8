package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A follower is a job whose ticks are its predecessors' ticks. A tick of a follower
// is due once the run of each predecessor for that tick has succeeded or, under AfterAny, has its
// outcome.
//
//   - The outcomes come from the records of the predecessors, up to their watermarks. An outcome
//     there is final, so an old reading of such a record is never wrong: it only knows less.
//   - The record of the follower alone says which ticks the follower has run. So each of them
//     runs once, whatever becomes of its predecessors later.
//   - Manual runs of a predecessor settle no tick, so they count for nothing here.
//   - A tick for which some predecessor did not succeed is skipped. If its outcome has left the
//     record of the predecessor, the tick is missed: a success is never guessed.
//   - Ticks that become due while the follower runs are settled by its next claim, and not at the
//     end of the run, which knows nothing of the predecessors.

// claimAfter is claimDue for a follower.
func (p *Policy) claimAfter(next *Claim, v View) bool {
	r := &next.Record
	all := p.fates(v, r.Watermark)
	if len(all) == 0 {
		return false
	}
	w, pauses := next.writing(v), p.pausesUntil(r, v.Control, v.Now)
	tick, reason := p.chooseAfter(all, v.Now, pauses)
	passed, left := p.joined(all, tick), fate{status: store.Missed, reason: reason, waited: v.Waited}
	if !p.passFates(w, passed, left, pauses) {
		return true
	}
	return p.claimChosen(next, v, tick, len(passed) > 0)
}

// chooseAfter is choose for a follower. The starting deadline counts from the last outcome that
// the tick waited for.
func (p *Policy) chooseAfter(all []fate, now time.Time, pauses []store.Span) (tick time.Time, reason string) {
	deadline, n := p.startingDeadline(), 0
	for _, f := range slices.Backward(all) {
		if f.status != "" {
			continue
		}
		if deadline > 0 && now.Sub(f.since) > deadline {
			break
		}
		if p.Missed != RunAll {
			if p.lastOutside(f.to, pauses).Equal(f.to) {
				tick = f.to
			}
			return tick, "a newer one was due"
		}
		for at := p.lastOutside(f.to, pauses); at.After(f.from); at = p.lastOutside(at.Add(-1), pauses) {
			if n++; n > maxBacklog {
				return tick, "too many were due"
			}
			tick = at
		}
	}
	return tick, "past the starting deadline"
}

// passFates settles ticks. Those that might be run are settled as left says. It returns false if the write has no room for all.
func (p *Policy) passFates(w *write, all []fate, left fate, pauses []store.Span) bool {
	for _, f := range all {
		switch {
		case w.full():
			return false
		case f.status != "":
			p.pass(w.Record, f.to, f.status, f.reason)
		case !p.passAll(w, f.to, left, pauses):
			return false
		}
	}
	return true
}

// joined returns the fates of the ticks before one, or all of them if that is zero, with one fate
// for neighbours that are settled alike: the history has room for few.
func (p *Policy) joined(all []fate, before time.Time) (out []fate) {
	for _, f := range all {
		if !before.IsZero() {
			f.to = instant.Earlier(f.to, p.Ticks.Last(before.Add(-1)))
		}
		n := len(out) - 1
		switch {
		case !f.to.After(f.from):
			return out
		case n >= 0 && out[n].status == f.status && out[n].reason == f.reason:
			out[n].to = f.to
		default:
			out = append(out, f)
		}
	}
	return out
}
