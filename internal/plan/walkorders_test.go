package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// forever is when a pause ends that nothing ends.
var forever = midnight.AddDate(100, 0, 0)

// deploy starts new replicas: they may have another schedule or setting.
func (w *world) deploy() {
	w.since = w.now
	switch n := w.IntN(6); {
	case n == 0 && w.orders().Backfill.Seq == 0: // else a tick of a backfill that waits may be run again under Abandon
		w.p.Interrupted = pick(w, Abandon, Rerun)
	case n == 1:
		w.p.Paused = !w.p.Paused
	case !w.p.Follows():
		w.changed = true
		w.define()
	}
	w.say("deploys %s, %s, paused %t", w.p.Spec, w.p.Interrupted, w.p.Paused)
}

// order gives an order.
func (w *world) order() {
	kind := pick(w, store.OrderPause, store.OrderResume, store.OrderRun, store.OrderRun, store.OrderCancel, store.OrderStepDown,
		store.OrderBackfill, store.OrderCancelBackfill)
	o := store.Order{Kind: kind, Token: w.rec.Token, About: AboutLast(&w.rec), Backfill: w.orders().Backfill}
	switch {
	case kind == store.OrderPause && w.odd(2):
		o.Until = w.now.Add(time.Duration(1+w.IntN(300)) * time.Second)
	case kind == store.OrderResume && w.rec.Run.Status == store.Running && w.rec.Orders.Paused.At.IsZero():
		o.Token--
	case kind == store.OrderRun:
		o.Name, o.Until = fmt.Sprint("run ", w.doc.Seq), w.now.Add(time.Duration(1+w.IntN(900))*time.Second)
	case kind == store.OrderCancel && !MayBeCancelled(&w.rec), kind == store.OrderStepDown && (!w.rec.MayRun() || !w.state.Live()):
		return
	case kind == store.OrderBackfill:
		from := w.now.Add(-time.Duration(w.IntN(1200)) * time.Second)
		former, of := o.Backfill, Range{From: from, To: instant.Earlier(w.rec.Watermark, from.Add(200*time.Second)), All: w.odd(2)}
		var err error
		if o.Backfill, _, _, err = w.p.PlanBackfill(&w.rec, w.now, of, &former); err != nil {
			return
		} else if former.On() && w.p.BackfillOver(&w.rec, &former) {
			o.Backfill.Before = former.Seq
		}
	}
	w.give(o)
}

// give gives an order, and notes what it does.
func (w *world) give(o store.Order) {
	o.Job, o.By, o.At = "job", "ann", w.now
	if control.Apply(&w.doc, &o, w.rec.Orders.Served) != nil {
		return
	}
	w.say("orders %s %s of %d until %s, number %d", o.Kind, o.Name, o.Token, o.Until.Format(time.TimeOnly), o.Seq)
	switch o.Kind {
	case store.OrderPause:
		cut(w.pauses, w.now)
		w.pauses = append(w.pauses, store.Span{From: w.now, To: forever})
		if !o.Until.IsZero() {
			cut(w.pauses, o.Until.Add(-1))
		}
	case store.OrderResume:
		cut(w.pauses, w.now)
		if !w.rec.Orders.Paused.At.IsZero() { // the last resume counts that comes before the record says so
			w.selfs[len(w.selfs)-1].To = w.orders().Resumed.At
		}
	case store.OrderCancel:
		w.last().cancelled = true
	}
}

// cut ends the last of some spans, unless it has ended before.
func cut(spans []store.Span, at time.Time) {
	if n := len(spans) - 1; n >= 0 {
		spans[n].To = instant.Earlier(spans[n].To, at)
	}
}

func (w *world) orders() store.JobControl { return w.doc.Jobs["job"] }

// waiting returns the first run by hand that is ordered, and has neither a run nor an outcome.
func (w *world) waiting() (q store.Request, ok bool) {
	all := w.orders().Requests
	i := slices.IndexFunc(all, func(q store.Request) bool {
		of := work{request: q.Name}
		runs, _ := w.attempts(of)
		return !w.answered[of] && len(runs) == 0
	})
	if i < 0 {
		return q, false
	}
	return all[i], true
}
