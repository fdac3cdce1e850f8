package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

func (w *world) view() View {
	return View{Record: &w.rec, State: w.state, Now: w.now, Since: w.since, Control: w.orders(), Before: w.before,
		Waited: w.waited, Break: Break{ByOperator: w.broke}}
}

// decide has a replica do what is to be done. It returns false if there is nothing.
func (w *world) decide() bool {
	v := w.view()
	w.sleeps(v)
	if w.odd(20) && w.old.Spec != "" {
		w.outdated()
	}
	if w.odd(6) {
		v.Claims = pick(w, NoBackfill, NoRun)
	}
	if w.odd(15) {
		v.Request = fmt.Sprint("call ", w.steps)
		if all := v.Control.Requests; len(all) > 0 && w.odd(2) { // one that was ordered too
			v.Request = all[w.IntN(len(all))].Name
		}
		if w.asks(v.Request) || Served(v) {
			return true
		}
	}
	if r := w.rec.Run.Request; store.BackfillOf(r) == 0 && r != "" {
		w.asks(r)
	}
	if w.p.ClaimAhead && v.Request == "" && w.odd(2) && w.ahead(v) {
		return true
	}
	next, todo := w.p.Claim(v)
	switch {
	case !todo:
		w.idle(v)
		return false
	case next.Run && w.p.Group != "" && w.odd(3): // no slot is free
		w.fullFor(next.Record.Run)
		return true
	}
	w.carryOut(next)
	return true
}

// fullFor has a claim wait, since no slot of the group is free.
func (w *world) fullFor(claim store.Run) {
	if claim.Request != "" {
		return
	}
	if !w.waited.From.After(w.rec.Watermark) {
		w.waited.From = claim.Tick.Add(-1)
	}
	w.waited.To = claim.Tick
	w.full = append(w.full, w.waited)
	w.say("%s finds no slot", claim.Tick.Format(time.TimeOnly))
}

// ahead has a replica claim the next tick before it is due.
func (w *world) ahead(v View) bool {
	next := w.p.NextTick(&w.rec)
	if left := next.Sub(w.now); left <= 0 || left > 2*time.Minute {
		return false
	}
	v.Now = instant.Later(w.now, next.Add(-w.p.Lead()))
	claim, ok := w.p.ClaimEarly(v, next)
	if ok {
		w.now = v.Now
		w.carryOut(claim)
	}
	return ok
}

// carryOut writes a claim, and does what it claims.
func (w *world) carryOut(next Claim) {
	before := w.rec
	if !next.Run {
		w.write("settles", next.Record, next.Backfilled...)
		return
	}
	next.Record.Run.Claimed, next.Record.Run.Replica, next.Record.Run.Lease = w.now, "r", store.Seconds(w.p.Lease)
	w.state, w.broke = store.Leased, false
	w.write("claims", next.Record, next.Backfilled...)
	w.judgeClaim(&w.rec)
	switch {
	case w.odd(10), w.orders().Pause.On(w.now) && w.rec.Run.Request == "":
		w.state = store.Available
		w.underWay(func(r *run) { r.back = true })
		w.write("takes back", w.p.TakeBack(&before, &w.rec))
	case w.rec.Run.Armed && w.odd(5):
		w.die("dies before the tick")
	case Several(&w.rec):
		w.several()
	default:
		w.run()
	}
}

// run lets the run of the last claim take place.
func (w *world) run() {
	w.now = instant.Later(w.now, w.rec.Run.Tick)
	w.pass(pick(w, time.Second, 5*time.Second, 35*time.Second, 3*time.Minute))
	if w.odd(3) {
		w.order()
		w.pass(4 * time.Second)
	}
	w.watched()
	replaced, end := w.p.ReplacedBy(w.view()), w.orders().End
	w.replaces(replaced)
	switch n := w.IntN(12); {
	case w.odd(5):
		w.die("dies")
	case end.Cancel && Ends(&end, w.rec.Token, AboutLast(&w.rec)) && n > 1:
		w.ends(store.Cancelled, CancelledBy(end))
	case !replaced.IsZero() && n > 2:
		w.ends(store.Cancelled, Replaced+" by the next")
	case end.Token == w.rec.Token && n > 1, w.odd(10):
		w.ends(store.Abandoned, pick(w, Stopped, "out of time"))
	case w.odd(10):
		w.stall()
	case w.odd(6):
		w.ends(store.Failed, "failed")
	case w.odd(12):
		w.ends(store.Skipped, "nothing to do")
	default:
		w.ends(store.Succeeded, "")
	}
}

// die leaves the run without its end: its replica has died, or an operator has ended its lease.
func (w *world) die(what string) {
	why := "its runner died"
	switch w.state = store.Expired; w.IntN(4) {
	case 0:
		w.rec.Run.Unlocked, why = store.Unlocked{By: "ann", At: w.now}, "unlocked by ann"
	case 1:
		w.state, w.broke, why = store.Broken, w.rec.Beats() > 0, "unlocked"
	}
	w.say("%s: %s", what, why)
	w.underWay(func(r *run) {
		if r.died, r.to = true, (time.Time{}); r.end == "" {
			r.reason = why
		}
	})
}

// ends writes the end of the run.
func (w *world) ends(status store.Status, reason string) {
	w.ended(w.rec.Run.Tick, status, reason)
	w.state = store.Available
	w.finished("ends", w.rec.Run.Tick, w.p.Finish(&w.rec, status, reason, w.now, w.now, w.pausesOver()))
}

func (w *world) pausesOver() []store.Span { return Pauses(&w.rec, w.orders(), w.now) }

// stall writes that the run has stalled, and perhaps that it has returned.
func (w *world) stall() {
	tick, token := w.rec.Run.Tick, w.rec.Token
	w.ended(tick, store.Stalled, "silent")
	w.finished("stalls", tick, w.p.Stall(&w.rec, "silent", w.now, w.pausesOver()))
	w.pass(30 * time.Second)
	if w.odd(2) {
		w.die("dies")
		return
	}
	w.ended(tick, store.Stalled, "silent")
	w.state = store.Available
	w.write("returns", w.p.Finish(&w.rec, store.Stalled, "silent", w.now, w.now, w.pausesOver()))
	for _, f := range w.rec.History {
		if f.Token == token && f.End != w.now {
			w.fail("%s has stalled, and its outcome has the end %s", tick, f.End)
		}
	}
}

// several lets the runs of a claim of several ticks take place.
func (w *world) several() {
	var all []Ended
	under := UnderWay(&w.rec)
	for _, n := range w.Perm(len(under)) {
		w.pass(3 * time.Second)
		e := Ended{Tick: under[n].Tick, Status: store.Succeeded, End: w.now}
		switch k := w.IntN(12); {
		case w.odd(10):
			w.die("dies")
			return
		case w.odd(8):
			e.Status, e.Reason = store.Abandoned, Stopped
		case w.odd(8):
			e.Status, e.Reason = store.Failed, "failed"
		case w.odd(8):
			e.Status, e.Reason = store.Stalled, "silent"
			w.ended(e.Tick, e.Status, e.Reason)
			w.finished("stalls", e.Tick, w.p.StallSeveral(&w.rec, e))
		case w.odd(8):
			e.Status = ""
		case k < 6:
			w.ended(e.Tick, e.Status, e.Reason)
			next := w.rec.Clone()
			w.p.End(&next, e)
			w.finished("notes an end", e.Tick, next)
		}
		all = append(all, e)
	}
	w.state = store.Available
	w.endSeveral(all)
}

// finished writes a record at the end of a run. If that run is one of a backfill, it may have got its outcome.
func (w *world) finished(what string, tick time.Time, next store.Record) {
	if next.Backfill.Done() > w.rec.Backfill.Done() {
		w.write(what, next, w.last(tick).outcome())
	} else {
		w.write(what, next)
	}
}

// endSeveral writes the end of a claim of several ticks.
func (w *world) endSeveral(all []Ended) {
	var also []store.Outcome
	next := w.p.FinishSeveral(&w.rec, all, w.now)
	for _, e := range all {
		r := w.last(e.Tick)
		if e.Status == "" {
			r.back = true
		} else if r.end == "" {
			w.ended(e.Tick, e.Status, e.Reason)
		}
		waits := slices.ContainsFunc(next.Backfill.Open, func(o store.OpenTick) bool { return o.Tick.Equal(e.Tick) })
		if _, answered := w.answers[r.work]; !answered && !waits {
			also = append(also, r.outcome())
		}
	}
	w.write("ends several", next, also...)
}
