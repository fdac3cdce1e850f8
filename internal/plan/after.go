package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A follower is a job whose ticks are those of other jobs, its predecessors. A tick of a follower
// is due once the run of each predecessor for that tick has succeeded or, under AfterAny, has its
// outcome.
//
//   - The outcomes come from the records of the predecessors, up to their watermarks. An outcome
//     there is final, so an old reading of such a record is never wrong: it only knows less.
//   - The record of the follower alone says which ticks the follower has run. So each of them
//     runs once, whatever becomes of its predecessors later.
//   - Runs of a predecessor by hand settle no tick, so they count for nothing here.
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
	if p.Paused {
		passed := p.joined(all, time.Time{})
		p.passFates(r, passed[:min(len(passed), maxFates)], fate{status: store.Skipped, reason: Paused}, nil)
		return true
	}
	pauses := Pauses(r, v.Control, v.Now)
	tick, reason := p.chooseAfter(all, v.Now, pauses)
	passed, left := p.joined(all, tick), fate{status: store.Missed, reason: reason, waited: v.Waited}
	if len(passed) > maxFates {
		p.passFates(r, passed[:maxFates], left, pauses)
		return true
	}
	p.passFates(r, passed, left, pauses)
	return p.claimChosen(next, v, tick, len(passed) > 0)
}

// maxFates is how many fates one write settles; the next write goes on. The history of a record has
// room for few more, and what it has no room for would be told nowhere.
const maxFates = 10

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

// passFates settles ticks. Those that might be run are settled as left says.
func (p *Policy) passFates(r *store.Record, all []fate, left fate, pauses []store.Span) {
	for _, f := range all {
		if f.status != "" {
			p.pass(r, f.to, f.status, f.reason)
		} else {
			p.passLeft(r, f.to, left, pauses)
		}
	}
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

// passLeft settles ticks that might be run and are not: those of a pause are skipped.
func (p *Policy) passLeft(r *store.Record, to time.Time, left fate, pauses []store.Span) {
	if left.status == store.Missed {
		p.passAll(r, to, left.reason, pauses, left.waited)
	} else {
		p.pass(r, to, left.status, left.reason)
	}
}
