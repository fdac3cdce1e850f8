package judge

import (
	"math"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// binds is how long after its confirmation each replica knows of an order.
const binds = 8*time.Second + 100*time.Millisecond

// orders: nothing of a paused job begins, but what is ordered; and a run that was ordered begins once.
func orders(w *world, bad report) {
	for _, o := range w.of[trace.Ordered] {
		e, begun := w.entries[o.Job], 0
		if e == nil {
			continue
		}
		from, to := w.pauseOf(o)
		for _, r := range e.runs {
			own := r.Request == "" || event.BackfillOf(r.Request) != 0
			within := r.Time.After(from) && !r.Time.After(to)
			switch {
			case r.Try != 1 || w.containerLost(o.Time, r.Time):
			case o.Op == string(soloist.OrderPause) && own && within && !w.sleeps(r.Replica, o.Heard, r.Time):
				bad(r.Time, "%s and it is paused since %s", r, clock(o.Heard))
			case o.Op == string(soloist.OrderRun) && r.Request == o.Request && e.epoch(o.Time) == e.epoch(r.Time):
				if begun++; begun > 1 {
					bad(r.Time, "%s and that has begun before", r)
				}
			}
		}
	}
}

// pauseOf is from when a pause is known everywhere until it ends, or until another order may have ended it.
func (w *world) pauseOf(pause *trace.Event) (from, to time.Time) {
	if to = w.end(); pause.Heard.IsZero() {
		return to, to
	}
	if !pause.End.IsZero() {
		to = pause.End.Add(-3 * time.Second)
	}
	for _, o := range w.of[trace.Ordered] {
		ends := o.Op == string(soloist.OrderResume) || o.Op == string(soloist.OrderPause) && !o.End.IsZero()
		if o != pause && o.Job == pause.Job && ends && (o.Heard.IsZero() || !o.Heard.Before(pause.Time)) {
			to = first(to, o.Time)
		}
	}
	return pause.Heard.Add(binds), to
}

// ordered: once all faults are over, each run that was ordered has its outcome, and each tick of a backfill.
func ordered(w *world, bad report) {
	if w.containerLost(time.Time{}, w.end()) {
		return
	}
	for _, t := range w.tasks {
		for _, o := range w.of[trace.Ordered] {
			switch {
			case o.Job != t.name || t.Every == 0 || o.Heard.IsZero() || len(t.epochs) > 0 || t.paused:
			case o.Op == string(soloist.OrderRun) && o.End.Before(w.settled) && !t.answered(o.Request):
				bad(o.Time, "%s of %s has no outcome", o.Request, o.Job)
			case o.Op == string(soloist.OrderBackfill):
				w.filled(o, t, bad)
			}
		}
	}
}

// filled judges a backfill that was not cancelled, of a job whose ticks no version of the program has changed or paused, and which
// is not behind with its own ticks: they come first, so one whose runs fill its period has no time for it.
func (w *world) filled(o *trace.Event, t task, bad report) {
	seq, last := event.BackfillOf(o.Request), t.last(forever)
	changed := w.befell(trace.Ordered, o.Job, o.Time, w.end(), string(soloist.OrderCancelBackfill))
	for replica := range w.Fleet {
		its := w.definition(replica, t.Name)
		changed = changed || its != nil && (its.Every != t.Every || its.Limits != t.Limits || its.Paused)
	}
	if changed || t.Every < starts || seq == 0 || last == nil || t.After(t.After(last.Watermark)).Before(w.settled) {
		return
	}
	want, done := 0, int64(0)
	for _, s := range o.Spans {
		want += ticksIn(t.Definition, s.From, s.To, math.MaxInt)
	}
	for _, q := range slices.Backward(t.writes) {
		if q.Record != nil && q.Record.Backfill.Seq == seq {
			done = q.Record.Backfill.Done()
			break
		}
	}
	if done != int64(want) {
		bad(w.settled, "%s of %s has %d ticks, and %d have an outcome", o.Request, o.Job, want, done)
	}
}
