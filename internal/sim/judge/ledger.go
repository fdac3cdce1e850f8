package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
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
			revived := r.Run.Status == event.Running && last.Run.Status != event.Running
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

// mostCounted is the largest number of ticks that an outcome of a range counts.
const mostCounted = 100_000

// ledger: the watermark never goes back. Each tick that it passes has one outcome, or is one of a counted range, and is a tick of
// the definition. A claim is of the first tick after the watermark, or of a tick that was claimed before; or, for a backfill,
// of any tick.
func ledger(w *world, bad report) {
	for _, e := range w.jobs {
		for _, q := range e.writes {
			switch {
			case q.Replica == trace.Operator:
			case q.Record == nil:
				bad(q.Time, "%s leaves no record of %s", q.Replica, e.name)
			case q.last != nil && q.Op != "create" && q.d != nil && q.d.Every > 0:
				q.passes(bad)
			}
		}
	}
	for _, c := range w.claims {
		run, mark := &c.Record.Run, c.Record.Watermark
		isTick := c.d != nil && c.d.Every > 0 && c.d.Last(run.Tick).Equal(run.Tick)
		switch {
		case c.d != nil && c.d.Every > 0 && event.BackfillOf(run.Request) != 0 && !isTick:
			bad(c.Time, "%s which is no tick", c)
		case c.last == nil || !c.ofTick():
		case !run.Tick.After(c.last.Watermark), run.Attempt == 1 && !isTick,
			run.Attempt == 1 && c.Record.Definition.Spec == c.last.Definition.Spec && !c.d.After(mark).Equal(run.Tick):
			bad(c.Time, "%s which is no tick, or not the first one after %s, or %s", c, clock(mark), clock(c.last.Watermark))
		}
	}
}

// passes judges the outcomes of ticks that one write brings.
func (q *write) passes(bad report) {
	mark := q.last.Watermark
	for _, f := range q.outcomes {
		if f.Request != "" || f.Tick.IsZero() {
			continue
		}
		if f.wrong() {
			bad(q.Time, "%s, %d in all, and that is not what comes after %s", f, f.Count, clock(f.mark))
		}
		mark = later(mark, f.Tick)
	}
	if !mark.Equal(q.Record.Watermark) {
		bad(q.Time, "%s moves the watermark of %s to %s, not %s", q.Replica, q.e.name, clock(q.Record.Watermark), clock(mark))
	}
}

// wrong reports whether an outcome is neither for the next tick nor for a counted range. What is written as the definition
// changes may leave ticks out.
func (o outcome) wrong() bool {
	d, single := o.write.d, o.From.IsZero()
	switch {
	case single && !o.Tick.After(o.mark), !single && !o.From.Equal(o.mark):
		return true
	case o.write.last.Definition.Spec != o.write.Record.Definition.Spec:
		return false
	case single && !d.After(o.mark).Equal(o.Tick), o.Token == 0 && o.Status != event.Abandoned && !d.Last(o.Tick).Equal(o.Tick):
		return true
	case single || o.Count == 0:
		return false
	}
	n := ticksIn(d, o.mark, o.Tick, mostCounted+1)
	return o.Count != min(n, mostCounted) || o.AtLeast != (n > mostCounted)
}

// ticksIn counts the ticks of a definition after a time, up to another one, or to a limit.
func ticksIn(d *trace.Definition, from, to time.Time, most int) (n int) {
	for tick := d.After(from); !tick.After(to) && n < most; tick = d.After(tick) {
		n++
	}
	return n
}

// facts: an outcome is what happened. A tick has succeeded, failed or been skipped only as its function returned before that was
// written, and was missed or skipped without a run only if none was claimed.
func facts(w *world, bad report) {
	for _, e := range w.jobs {
		byTick := slices.Clone(e.claims)
		slices.SortStableFunc(byTick, func(a, b *claim) int { return a.Record.Run.Tick.Compare(b.Record.Run.Tick) })
		tickOf := func(c *claim) time.Time { return c.Record.Run.Tick }
		for _, o := range e.outcomes {
			if d := o.write.d; d == nil || d.Every == 0 || o.Request != "" {
				continue
			}
			within := byTick[after(byTick, o.mark, tickOf):max(after(byTick, o.mark, tickOf), after(byTick, o.Tick, tickOf))]
			claimed := o.Token == 0 && slices.ContainsFunc(within, func(c *claim) bool {
				return c.back.IsZero() && c.epoch == o.write.epoch && c.Record.Run.Request == "" && c.Time.Before(o.write.Time)
			})
			if claimed || o.Token != 0 && !o.happened() {
				bad(o.write.Time, "%s, and that is not so, or it was claimed", o)
			}
		}
	}
}

// happened reports whether an outcome is how the last call of its function ended which had ended when that was written.
func (o outcome) happened() bool {
	r := &run{}
	for _, one := range o.write.e.runsBy[o.Token] {
		if one.inEpoch(o.write.Time) && !one.goesOn(o.write.Time) {
			r = one
		}
	}
	return o.Status != event.Succeeded && o.Status != event.Skipped && o.Status != event.Failed ||
		o.Status == event.Succeeded && r.Result == trace.Well || o.Status == event.Skipped && r.Result == trace.Skipped ||
		o.Status == event.Failed && r.Result != "" && !r.returned()
}

// once: what has succeeded does not begin again: a tick once its success is written, the work of a key once it is done.
func once(w *world, r *run) bool {
	_, isKey := w.Onces[r.e.name]
	own := r.inEpoch(r.Time) && (isKey || !r.Tick.IsZero() && r.Request == "")
	return own && slices.ContainsFunc(r.e.outcomesBy[r.Tick.UnixNano()], func(o outcome) bool {
		done := o.Status == event.Succeeded && (isKey || o.Request == "") || isKey && o.Status == event.Skipped
		at := o.write.Time
		return done && r.Time.After(at) && o.write.epoch == r.claim.epoch && !w.sleeps(r.Replica, at, r.Time)
	})
}
