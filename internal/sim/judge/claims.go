package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// claims: each call of a function belongs to a claim that its replica wrote before, that was not taken back, and that is of its
// tick and attempt. A claim begins each of its tries once.
func claims(_ *world, r *run) bool {
	c := r.claim
	if c == nil {
		return true
	}
	again := slices.ContainsFunc(r.e.runsBy[r.Token], func(o *run) bool { // a claim of a backfill may have several ticks
		return o != r && o.claim == c && o.Try == r.Try && o.Tick.Equal(r.Tick)
	})
	run := &c.Record.Run
	other := run.Attempt != r.Attempt || r.Request == "" && !run.Tick.Equal(r.Tick)
	return again || !c.back.IsZero() && c.back.Before(r.Time) || other && !trace.IsSlot(r.e.name) && !c.Record.Backfill.Several
}

// tokens: the token grows with each claim in the order of the service, also after an entry was deleted and made again, but not
// after an older version was put back. A token is of one run: no write makes it another's.
func tokens(w *world, bad report) {
	for _, e := range w.logs {
		for i, c := range e.claims[min(1, len(e.claims)):] {
			before := e.claims[i]
			restores := func(o *trace.Event) bool { return !o.Time.After(c.Time) && !o.End.Before(before.Time) }
			restored := slices.ContainsFunc(e.of[trace.Corrupted], restores)
			if c.Record.Token <= before.Record.Token && (before.epoch == c.epoch || !restored) {
				bad(c.Time, "%s with token %d after %d", c, c.Record.Token, before.Record.Token)
			}
		}
	}
	for _, e := range w.jobs {
		for _, q := range e.writes {
			r, last := q.Record, q.last
			if r == nil || last == nil || q.Replica == trace.Operator || q.Op == "create" || q.Op == "take back" {
				continue
			}
			revived := r.Run.Status == store.Running && last.Run.Status != store.Running
			other := !r.Run.Tick.Equal(last.Run.Tick) || r.Run.Attempt != last.Run.Attempt || revived
			if other && r.Token == last.Token && !last.Backfill.Several {
				bad(q.Time, "%s writes another run of %s with token %d", q.Replica, e.name, r.Token)
			}
		}
	}
}

// attempts: a tick is claimed once for each attempt, without gaps, in the order of ticks; a further attempt needs Rerun, and
// another lease than the one before.
func attempts(w *world, bad report) {
	before := map[*entryLog]*claim{} // of a tick
	for _, c := range w.claims {
		if !c.ofTick() {
			continue
		}
		b := before[c.e]
		if b != nil && b.epoch != c.epoch {
			b = nil
		}
		run, last, first := &c.Record.Run, c.last, c.Record.Run.Attempt == 1
		switch {
		case last == nil:
		case !first && (!last.Run.Tick.Equal(run.Tick) || last.Run.Attempt != run.Attempt-1 || c.d.Interrupted != soloist.Rerun):
			bad(c.Time, "%s which is not the next one, or has no Rerun", c)
		case b == nil:
		case !first && b.Lease == c.Lease, run.Tick.Before(b.Record.Run.Tick), first && run.Tick.Equal(b.Record.Run.Tick):
			bad(c.Time, "%s after that %s, or under the same lease", c, b)
		}
		before[c.e] = c
	}
}

// early: no tick begins while an answer of the service, under the lease of its claim, proves that it is not due yet: its date is
// of whole seconds, and the replica's clocks may be fast by a fiftieth since.
func early(w *world, r *run) bool {
	begins := r.Try == 1 && r.isTick() && r.Time.Before(r.Tick)
	return begins && slices.ContainsFunc(r.e.requestsBy[r.claim.Lease], func(q *trace.Event) bool {
		latest := q.Time.Truncate(time.Second).Add(time.Second + r.Time.Sub(q.Sent)*51/50 + slack)
		known := q.Replica == r.Replica && q.OK() && q.Cause == "" && !q.Heard.IsZero() && q.Heard.Before(r.Time)
		return known && latest.Before(r.Tick) && !w.sleeps(r.Replica, q.Sent.Add(-slack), r.Time)
	})
}
