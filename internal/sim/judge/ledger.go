package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// mostCounted is the largest number of ticks that an outcome of a range counts.
const mostCounted = 100_000

// ledger: the watermark never goes back. Each tick that it passes has one outcome, or is one of a counted range, and is a tick of
// the definition. A claim is of the first tick after the watermark, or of one that was claimed before.
func ledger(w *world, bad report) {
	for _, e := range w.jobs {
		w.settledTicks(e, bad)
		for _, c := range e.claims {
			run, last, d := &c.Record.Run, e.before[c.Event], w.definition(c.Replica, e.name)
			if !c.back.IsZero() || last == nil || d == nil || d.Every == 0 || run.Request != "" || run.Tick.IsZero() {
				continue
			}
			mark, same := c.Record.Watermark, c.Record.Definition.Spec == last.Definition.Spec
			switch {
			case !run.Tick.After(last.Watermark):
				bad(c.Time, "%s claims tick %s of %s, which has its outcome", c.Replica, clock(run.Tick), e.name)
			case run.Attempt == 1 && !d.Last(run.Tick).Equal(run.Tick):
				bad(c.Time, "%s claims %s, which is no tick of %s", c.Replica, clock(run.Tick), e.name)
			case run.Attempt == 1 && same && !d.After(mark).Equal(run.Tick):
				bad(c.Time, "%s claims tick %s of %s, and leaves out those after %s", c.Replica, clock(run.Tick), e.name, clock(mark))
			}
		}
	}
}

// settledTicks goes through the writes of an entry, with the outcomes that each brings.
func (w *world) settledTicks(e *entryLog, bad report) {
	next := 0
	for _, q := range e.writes {
		first := next
		for next < len(e.outcomes) && e.outcomes[next].write == q {
			next++
		}
		d, last := w.definition(q.Replica, e.name), e.before[q]
		switch {
		case q.Replica == trace.Operator:
		case q.Record == nil:
			bad(q.Time, "%s leaves no record of %s", q.Replica, e.name)
		case last != nil && q.Op != "create" && d != nil && d.Every > 0:
			passes(e.name, q, last, d, e.outcomes[first:next], bad)
		}
	}
}

// passes judges the outcomes of ticks that one write brings.
func passes(name string, q *trace.Event, last *store.Record, d *trace.Definition, all []outcome, bad report) {
	mark, same := last.Watermark, last.Definition.Spec == q.Record.Definition.Spec
	for _, f := range all {
		if f.Request != "" || f.Tick.IsZero() {
			continue
		}
		if why := wrongOutcome(f, d, same); why != "" {
			bad(q.Time, "%s writes that tick %s of %s is %s, from %s, after %s: %s", q.Replica, clock(f.Tick), name, f.Status, clock(f.From), clock(f.mark), why)
		}
		mark = later(mark, f.Tick)
	}
	if !mark.Equal(q.Record.Watermark) {
		bad(q.Time, "%s moves the watermark of %s from %s to %s, and its outcomes reach to %s", q.Replica, name, clock(last.Watermark), clock(q.Record.Watermark), clock(mark))
	}
}

// wrongOutcome is what is wrong with an outcome after those before it, empty for nothing. Same: it is written under the
// definition of the record before.
func wrongOutcome(f outcome, d *trace.Definition, same bool) string {
	switch {
	case f.From.IsZero() && !f.Tick.After(f.mark), !f.From.IsZero() && !f.From.Equal(f.mark):
		return "it has one, or some ticks have none"
	case !same:
		return ""
	case f.From.IsZero() && !d.After(f.mark).Equal(f.Tick):
		return "ticks before it have none"
	case f.Token == 0 && f.Status != store.Abandoned && !d.Last(f.Tick).Equal(f.Tick):
		return "it is no tick"
	case !f.From.IsZero() && f.Count > 0:
		n := 0
		for tick := d.After(f.mark); !tick.After(f.Tick) && n <= mostCounted; tick = d.After(tick) {
			n++
		}
		if f.Count != min(n, mostCounted) || f.AtLeast != (n > mostCounted) {
			return "its count is wrong"
		}
	}
	return ""
}

// facts: an outcome is what happened. A tick has succeeded, failed or been skipped only as its function returned before that was
// written, and was missed or skipped without a run only if none was claimed.
func facts(w *world, bad report) {
	for _, e := range w.jobs {
		byTick := slices.Clone(e.claims)
		slices.SortStableFunc(byTick, func(a, b *claim) int { return a.Record.Run.Tick.Compare(b.Record.Run.Tick) })
		for _, o := range e.outcomes {
			d := w.definition(o.write.Replica, e.name)
			if d == nil || d.Every == 0 || o.Request != "" {
				continue
			}
			if o.Token == 0 {
				if c := e.claimedIn(byTick, o); c != nil {
					bad(o.write.Time, "%s writes that tick %s of %s is %s, and it was claimed", o.write.Replica, clock(c.Record.Run.Tick), e.name, o.Status)
				}
				continue
			}
			if !happened(o, e.ended(o)) {
				bad(o.write.Time, "%s writes that tick %s of %s has %s, and that is not so", o.write.Replica, clock(o.Tick), e.name, o.Status)
			}
		}
	}
}

// claimedIn is a claim of a tick in the range of an outcome without a run, written before it in the same epoch.
func (e *entryLog) claimedIn(byTick []*claim, o outcome) *claim {
	epoch := e.epoch(o.write.Time)
	first := after(byTick, o.mark, func(c *claim) time.Time { return c.Record.Run.Tick })
	for _, c := range byTick[first:] {
		if c.Record.Run.Tick.After(o.Tick) {
			return nil
		}
		if c.back.IsZero() && c.epoch == epoch && c.Record.Run.Request == "" && c.Time.Before(o.write.Time) {
			return c
		}
	}
	return nil
}

// ended is the last call of the function that an outcome is of which had ended when that was written, nil for none.
func (e *entryLog) ended(o outcome) (last *run) {
	for _, r := range e.find.runs[o.Token] {
		if e.inEpoch(r, o.write.Time) && !r.End.IsZero() && !r.End.After(o.write.Time) {
			last = r
		}
	}
	return last
}

// happened reports whether an outcome is how the last call of its function ended; r is nil if none had.
func happened(o outcome, r *run) bool {
	switch o.Status {
	case store.Succeeded:
		return r != nil && r.Result == trace.Well
	case store.Skipped:
		return r != nil && r.Result == trace.Skipped
	case store.Failed:
		return r != nil && r.Result != "" && !r.returned()
	}
	return true
}

// once: what has succeeded does not begin again: a tick once its success is written, the work of a key once it is done.
func once(w *world, bad report) {
	for e, r := range w.runs() {
		_, isKey := w.Onces[e.name]
		if r.claim == nil || !isKey && (r.Tick.IsZero() || r.Request != "") {
			continue
		}
		for _, o := range e.find.outcomes[r.Tick.UnixNano()] {
			done := o.Status == store.Succeeded && (isKey || o.Request == "") || isKey && o.Status == store.Skipped
			if done && r.Time.After(o.write.Time) && e.epoch(o.write.Time) == e.epoch(r.Time) && e.inEpoch(r, r.Time) && !w.sleeps(r.Replica, o.write.Time, r.Time) {
				bad(r.Time, "%s begins tick %s of %s, which has succeeded", r.Replica, clock(r.Tick), e.name)
				break
			}
		}
	}
}
