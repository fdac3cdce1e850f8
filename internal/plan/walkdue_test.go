package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// planned judges the ticks of a backfill that is to be ordered.
func (w *world) planned(of Range, b *store.Backfill) {
	if w.changed { // what was missed may be ticks of another schedule
		return
	}
	for tick := w.p.Ticks.Next(of.From.Add(-1)); !tick.After(of.To); tick = w.p.Ticks.Next(tick) {
		i := slices.IndexFunc(w.told, func(f store.Outcome) bool { return tick.After(f.From) && !tick.After(f.Tick) })
		missed := i >= 0 && w.told[i].Status == store.Missed && w.told[i].Reason != ScheduleChanged
		done := w.answers[work{store.BackfillRequest(w.fill), tick}].Status == store.Succeeded
		if in := within(tick, b.Spans); of.All && !in || !of.All && (in && !missed || missed && !done && !in) {
			w.fail("%s is in the backfill: %t; missed: %t, made up for: %t", tick, in, missed, done)
		}
	}
}

// replaces judges which tick takes the place of the run that is under way.
func (w *world) replaces(tick time.Time) {
	var want time.Time
	r, newest := &w.rec.Run, w.p.Ticks.Last(w.now)
	late := w.deadline() > 0 && w.now.Sub(newest) > w.deadline()
	if w.p.Overlap == Replace && r.Request == "" && newest.After(r.Tick) && !late && !w.p.Paused && !w.paused() && !w.inPause(newest) {
		want = newest
	}
	if !tick.Equal(want) {
		w.fail("%s takes the place of %s, want %s", tick, r.Tick, want)
	}
}

// sleeps judges until when plan says that nothing is due: asked again just before, there is nothing to run.
func (w *world) sleeps(v View) {
	a := w.p.Next(v, &Observation{At: w.now, LookedAt: w.now, Fresh: true}, Clock{Low: w.now, Drift: 100})
	if _, todo := w.p.Claim(v); todo != (a.What == Acquire) {
		w.fail("there is something to do: %t, and a replica does %+v", todo, a)
	}
	near := w.p.NextTick(&w.rec).Sub(w.now) <= 2*w.p.Lead() // the claim of that tick tells
	if a.What == Wait && w.p.UntilTell(&w.rec, w.now, v.Control) <= 0 && !w.rec.MayRun() && !w.paused() && !near {
		w.fail("a tick is late, and a replica does %+v", a)
	}
	wanted := w.p.Wanted(v)
	if wanted.IsZero() {
		wanted = w.now.Add(30 * 24 * time.Hour)
	}
	until := []time.Time{wanted.Add(-1)}
	if a.What == Wait || a.What == Await {
		until = append(until, w.now.Add(a.After-1))
	}
	for _, v.Now = range until {
		if next, _ := w.p.Claim(v); v.Now.After(w.now) && next.Run {
			w.fail("nothing is said to be due until %s, and %s is run before", v.Now, next.Record.Run.Tick)
		}
	}
}

// watched judges when a replica is wanted while a run is under way: when its lease would end, or at the next tick.
func (w *world) watched() {
	v := w.view()
	v.Break.Able = w.p.Beat > 0
	least, most := w.p.Lease, w.p.Lease
	if v.Break.Able { // the rates of two clocks may differ by one in a hundred
		least, most = w.p.Beat*100/99-1, w.p.Beat*102/100
	}
	at, next := w.p.Wanted(v), w.p.Ticks.Next(w.now)
	if wait := at.Sub(w.now); at.IsZero() || wait < 0 || wait > most || wait < least && !at.Equal(next) {
		w.fail("a run is under way, and a replica is wanted in %s", wait)
	}
}

// asks judges what a call by hand is told of a run.
func (w *world) asks(request string) (known bool) {
	f, known := OutcomeOfRequest(&w.rec, request, w.state)
	if o := w.answers[work{request: request}]; known && o.Status != f.Status {
		w.fail("%s is told to be %s, and is %q", request, f.Status, o.Status)
	}
	return known
}

// idle judges that there is nothing to do.
func (w *world) idle(v View) {
	if early(v) || v.Request != "" || v.Claims == NoRun {
		return
	}
	if newest := w.newest(); newest.After(w.rec.Watermark) && !w.paused() {
		w.fail("%s is due, and there is nothing to do", newest)
	}
	if !w.rec.Orders.Paused.At.IsZero() && !within(w.now.Add(1), w.selfs) {
		w.fail("the job was resumed, the record says that it is paused, and there is nothing to do")
	}
	for _, o := range w.asked {
		if w.waits(o) && !unsettled(&w.rec) {
			w.fail("%s is ordered, and there is nothing to do", o.Name)
		}
	}
}

// outdated judges that a replica of an older definition does nothing.
func (w *world) outdated() {
	v := w.view()
	v.Since = w.oldSince
	if _, todo := w.old.Claim(v); todo && w.rec.Definition.Spec == w.p.Spec && w.old.Spec != w.p.Spec {
		w.fail("a replica of %s does something, and %s is in force", w.old.Spec, w.p.Spec)
	}
}

// over judges what has become of everything, once there is nothing left to do.
func (w *world) over() {
	for _, o := range w.asked {
		if all, _ := w.attempts(work{request: o.Name}); w.waits(o) || len(all) > 0 && w.answers[work{request: o.Name}].Status == "" {
			w.fail("%s was ordered, and has no outcome", o.Name)
		}
	}
	n, b := 0, w.fills[w.fill]
	for of := range w.answers {
		if of.request == store.BackfillRequest(w.fill) {
			n++
		}
	}
	if b.Cancelled.Seq == 0 && !w.p.Paused && !w.changed && n != b.Ticks {
		w.fail("the backfill has %d ticks, and %d outcomes", b.Ticks, n)
	}
}
