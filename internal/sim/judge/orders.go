package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// binds is how long after its confirmation each replica knows of an order.
const binds = 8*time.Second + 100*time.Millisecond

// orders: nothing of a paused job begins, but what is ordered; and a run that was ordered begins once.
func orders(w *world, bad report) {
	for _, o := range w.of[trace.Ordered] {
		e := w.entries[o.Job]
		switch {
		case e == nil:
		case o.Op == string(store.OrderPause) && !o.Heard.IsZero():
			w.obeyPause(o, e, bad)
		case o.Op == string(store.OrderRun):
			begun := 0
			for _, r := range e.runs {
				if r.Request != o.Request || r.Try != 1 || e.epoch(o.Time) != e.epoch(r.Time) || w.containerLost(o.Time, r.Time) {
					continue
				}
				if begun++; begun > 1 {
					bad(r.Time, "%s begins %s of %s again", r.Replica, o.Request, o.Job)
				}
			}
		}
	}
}

// obeyPause judges what begins from when a pause is known everywhere until it ends, or until another order may have ended it.
func (w *world) obeyPause(pause *trace.Event, e *entryLog, bad report) {
	from, to := pause.Heard.Add(binds), w.end().Add(1)
	if !pause.End.IsZero() {
		to = pause.End.Add(-3 * time.Second)
	}
	for _, o := range w.of[trace.Ordered] {
		ends := o.Op == string(store.OrderResume) || o.Op == string(store.OrderPause) && !o.End.IsZero()
		if o != pause && o.Job == pause.Job && ends && (o.Heard.IsZero() || !o.Heard.Before(pause.Time)) && o.Time.Before(to) {
			to = o.Time
		}
	}
	for _, r := range e.runs {
		if r.Time.After(from) && !r.Time.After(to) && r.Try == 1 && (r.Request == "" || store.BackfillOf(r.Request) != 0) &&
			!w.containerLost(pause.Time, r.Time) && !w.sleeps(r.Replica, pause.Heard, r.Time) {
			bad(r.Time, "%s begins %s, which is paused since %s", r.Replica, pause.Job, clock(pause.Heard))
		}
	}
}

// ordered: once all faults are over, each run that was ordered has its outcome, and each tick of a backfill.
func ordered(w *world, bad report) {
	if w.healed.IsZero() {
		return
	}
	for _, o := range w.of[trace.Ordered] {
		e, d := w.entries[o.Job], w.latest(o.Job)
		if e == nil || d == nil || d.Every == 0 || o.Heard.IsZero() || len(e.epochs) > 0 || w.pausedItself(o.Job) || w.containerLost(time.Time{}, w.end()) {
			continue
		}
		switch o.Op {
		case string(store.OrderRun):
			if o.End.Before(w.settled) && !slices.ContainsFunc(e.outcomes, func(f outcome) bool { return f.Request == o.Request }) {
				bad(o.Time, "%s of %s has no outcome", o.Request, o.Job)
			}
		case string(store.OrderBackfill):
			w.filled(o, e, d, bad)
		}
	}
}

// filled judges a backfill that was not cancelled, of a job whose ticks no version of the program has changed, and which is not
// behind with its own ticks.
func (w *world) filled(o *trace.Event, e *entryLog, d *trace.Definition, bad report) {
	seq, last := store.BackfillOf(o.Request), e.last()
	cancelled := slices.ContainsFunc(w.of[trace.Ordered], func(c *trace.Event) bool {
		return c.Job == o.Job && c.Op == string(store.OrderCancelBackfill) && c.Time.After(o.Time)
	})
	if cancelled || seq == 0 || last == nil || d.After(d.After(last.Watermark)).Before(w.settled) || w.changed(d) {
		return
	}
	want := int64(0)
	for _, s := range o.Spans {
		for tick := d.After(s.From); !tick.After(s.To); tick = d.After(tick) {
			want++
		}
	}
	for _, q := range slices.Backward(e.writes) {
		if q.Record == nil || q.Record.Backfill.Seq != seq {
			continue
		}
		if done := q.Record.Backfill.Done(); done != want {
			bad(w.settled, "%s of %s has %d ticks, and %d have an outcome", o.Request, o.Job, want, done)
		}
		return
	}
	bad(w.settled, "%s of %s has not begun", o.Request, o.Job)
}

// changed reports whether a replica had other ticks for a job, or had it paused.
func (w *world) changed(d *trace.Definition) bool {
	for replica := range w.Fleet {
		if its := w.definition(replica, d.Name); its != nil && (its.Every != d.Every || its.Limits != d.Limits || its.Paused) {
			return true
		}
	}
	return false
}
