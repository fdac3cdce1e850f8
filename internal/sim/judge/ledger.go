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
		if c.last == nil || !c.ofTick() {
			continue
		}
		run, mark, same := &c.Record.Run, c.Record.Watermark, c.Record.Definition.Spec == c.last.Definition.Spec
		next := c.d.Last(run.Tick).Equal(run.Tick) && (!same || c.d.After(mark).Equal(run.Tick))
		if !run.Tick.After(c.last.Watermark) || run.Attempt == 1 && !next {
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

// wrong reports whether an outcome is not that of the next tick or of a counted range. What is written as the definition changes
// may leave ticks out.
func (o outcome) wrong() bool {
	d, single := o.write.d, o.From.IsZero()
	switch {
	case single && !o.Tick.After(o.mark), !single && !o.From.Equal(o.mark):
		return true
	case o.write.last.Definition.Spec != o.write.Record.Definition.Spec:
		return false
	case single && !d.After(o.mark).Equal(o.Tick), o.Token == 0 && o.Status != store.Abandoned && !d.Last(o.Tick).Equal(o.Tick):
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
	return o.Status != store.Succeeded && o.Status != store.Skipped && o.Status != store.Failed ||
		o.Status == store.Succeeded && r.Result == trace.Well || o.Status == store.Skipped && r.Result == trace.Skipped ||
		o.Status == store.Failed && r.Result != "" && !r.returned()
}

// once: what has succeeded does not begin again: a tick once its success is written, the work of a key once it is done.
func once(w *world, r *run) bool {
	_, isKey := w.Onces[r.e.name]
	own := r.inEpoch(r.Time) && (isKey || !r.Tick.IsZero() && r.Request == "")
	return own && slices.ContainsFunc(r.e.outcomesBy[r.Tick.UnixNano()], func(o outcome) bool {
		done := o.Status == store.Succeeded && (isKey || o.Request == "") || isKey && o.Status == store.Skipped
		at := o.write.Time
		return done && r.Time.After(at) && o.write.epoch == r.claim.epoch && !w.sleeps(r.Replica, at, r.Time)
	})
}
