package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// write puts a record in the place of the last one, and judges what is new in it. also are outcomes of a backfill, which a
// record only counts.
func (w *world) write(what string, next store.Record, also ...store.Outcome) {
	last := w.rec
	news := next.History[:len(next.History)-len(last.History)]
	w.say("%s: token %d, %s %s/%d %s, through %s, %q %d", what, next.Token-last.Created.UnixMicro(), next.Run.Status,
		next.Run.Tick.Format(time.TimeOnly), next.Run.Attempt, next.Run.Request, next.Watermark.Format(time.TimeOnly),
		told(&store.Record{History: news}), len(also))
	switch filled := next.Backfill.Done() - last.Backfill.Done(); {
	case next.Token != last.Token && (what != "claims" || next.Token != last.Token+1):
		w.fail("the token goes from %d to %d", last.Token, next.Token)
	case next.Backfill.Seq == last.Backfill.Seq && filled != int64(len(also)):
		w.fail("%d outcomes of the backfill are counted, and there are %d", filled, len(also))
	}
	mark, ticks := last.Watermark, w.kinds[last.Definition.Spec]
	for _, f := range slices.Backward(news) {
		switch changed := next.Definition.Spec != last.Definition.Spec; {
		case f.Request != "":
			w.judgeAnswer(f)
			continue
		case f.Token != 0 && !ticks.Next(mark).Equal(f.Tick):
			w.fail("%s has its outcome, and the tick after %s has none", f.Tick, mark)
		case f.Token != 0:
			w.judgeRun(f)
		case changed && f.Count == 0 && !f.From.IsZero():
			w.judgeChange(f, ticks.Next(mark))
		default:
			ticks = w.kinds[next.Definition.Spec]
			w.judgePassed(f, mark, ticks)
		}
		if f.From, mark = mark, f.Tick; f.Status == store.Succeeded {
			w.streak = 0
		} else if f.Status == store.Failed || f.Status == store.Stalled {
			w.streak++
		}
		w.told = append(w.told, f)
	}
	for _, f := range also {
		w.judgeAnswer(f)
	}
	w.judgeRecord(what, &last, &next, mark)
	next.History = next.History[:min(len(next.History), 20)]
	w.rec = next
}

// judgeRecord judges what a record says of all that came before.
func (w *world) judgeRecord(what string, last, next *store.Record, mark time.Time) {
	var succeeded time.Time
	for _, f := range w.told {
		if f.Status == store.Succeeded {
			succeeded = f.Tick
		}
	}
	was, is := !last.Orders.Paused.At.IsZero(), !next.Orders.Paused.At.IsZero()
	if was && !is || !is && w.streak >= w.p.PauseAfter && w.resumed >= last.Token {
		w.streak = 0
	}
	switch tooMany := w.p.PauseAfter > 0 && w.streak >= w.p.PauseAfter; {
	case !next.Watermark.Equal(mark) || mark.After(w.now) && mark.After(last.Watermark):
		w.fail("the watermark is %s, and outcomes reach to %s", next.Watermark, mark)
	case !LastSuccess(next).Equal(succeeded):
		w.fail("the newest tick that has succeeded is %s, and the record says %s", succeeded, LastSuccess(next))
	case next.Definition.Spec == w.p.Spec && !next.Due.Equal(w.p.Unclaimed(next)):
		w.fail("the record says that %s is due", next.Due)
	case is && !was && !tooMany, !is && tooMany:
		w.fail("the job has failed %d times in a row, and paused itself: %t", w.streak, is)
	case is && was && !within(w.now.Add(1), w.selfs) && (what == "settles" || what == "claims" && next.Run.Request == ""):
		w.fail("the job was resumed, and the record does not say so")
	case is && !was:
		w.selfs = append(w.selfs, store.Span{From: w.now, To: forever})
	}
}

// judgeChange judges ticks that were due under the definition before: due is the first of them.
func (w *world) judgeChange(f store.Outcome, due time.Time) {
	switch {
	case due.Equal(w.p.Ticks.Last(w.now)) && !f.Tick.Before(due):
		w.fail("%s is dropped, which both schedules name", due)
	case f.Reason != ScheduleChanged && (f.Reason != Paused || !w.inPause(due)):
		w.fail("%s is %s (%s), and the schedule has changed", due, f.Status, f.Reason)
	}
}

// judgePassed judges the outcome of ticks that no replica has run. Of very many only the first and the last are looked at.
func (w *world) judgePassed(f store.Outcome, mark time.Time, ticks grid) {
	n, some := ticks.Count(mark, f.Tick, 1e9), 100*time.Duration(ticks)
	switch {
	case n == 0 || !ticks.Last(f.Tick).Equal(f.Tick):
		w.fail("%s is no tick after %s", f.Tick, mark)
	case n > 1 && (!f.From.Equal(mark) || f.Count != min(n, maxCount) || f.AtLeast != (n > maxCount)), n == 1 && !f.From.IsZero():
		w.fail("%d ticks after %s have the outcome %+v", n, mark, f)
	}
	for _, r := range w.runs {
		if r.request == "" && !r.back && r.tick.After(mark) && !r.tick.After(f.Tick) {
			w.fail("%s is %s (%s), and it was claimed", r.tick, f.Status, f.Reason)
		}
	}
	for tick := ticks.Next(mark); !tick.After(f.Tick); tick = ticks.Next(tick) {
		if status := w.judgeReason(tick, f.Reason); status != f.Status {
			w.fail("%s is %s: %s, which it is not", tick, f.Status, f.Reason)
		}
		if tick.Sub(mark) > some && f.Tick.Sub(tick) > some {
			tick = ticks.Last(f.Tick.Add(-some))
		}
	}
}

// judgeReason returns what a tick is that was not run for a reason; empty: the reason is not true.
func (w *world) judgeReason(tick time.Time, reason string) (status store.Status) {
	ready, _ := w.ready(tick)
	newest, paused := w.newest(), w.inPause(tick)
	says := func(text string, is store.Status, holds bool) {
		if reason == text && holds {
			status = is
		}
	}
	says("a newer one was due", store.Missed, w.p.Missed != RunAll && newest.After(tick) && !paused)
	says("past the starting deadline", store.Missed, w.deadline() > 0 && w.now.Sub(ready) > w.deadline() && !paused)
	says("too many were due", store.Missed, w.p.Missed == RunAll && w.p.Ticks.Count(tick, w.now, maxBacklog) == maxBacklog && !paused)
	says(Paused, store.Skipped, paused || w.p.Paused)
	waits := w.p.Overlap != SkipOverlap && !newest.After(tick)
	says("overlap", store.Skipped, w.under(tick, false) && w.p.Missed != RunAll && !w.p.Follows() && !waits)
	lost := w.p.AfterAny
	for i, name := range w.p.After {
		f, known := w.prior[i].of(tick)
		says("the outcome of "+name+" is not known", store.Missed, !known)
		says(name+" "+string(f.Status), store.Skipped, !lost && f.Status != store.Succeeded)
		lost = lost || f.Status != store.Succeeded
	}
	return status
}

// judgeRun judges the outcome of a run.
func (w *world) judgeRun(f store.Outcome) {
	i := slices.IndexFunc(w.runs, func(r *run) bool { return r.token == f.Token && r.work == workOf(f.Request, f.Tick) })
	if i < 0 {
		w.fail("%s %s has the outcome of another run", f.Tick, f.Request)
	}
	r := w.runs[i]
	all, dead := w.attempts(r.work)
	fill := store.BackfillOf(f.Request)
	inForce := f.Request == "" || fill != 0 && fill == w.fill.Seq && w.fill.Cancelled.Seq == 0
	if f.Status == store.Cancelled && (r.back || r.end == "" || r.broke()) { // no function has returned that
		goesOn := inForce || fill == 0
		if !w.cancels[f.Token] && !w.called[r.work] && goesOn || !strings.HasPrefix(f.Reason, "by ann") {
			w.fail("%s is cancelled (%s), and was not", f.Tick, f.Reason)
		}
		return
	}
	if r.back && len(all) > 0 { // another attempt was given up: its token is spent, and the outcome is that of the attempt before
		r = all[len(all)-1]
	}
	status := r.end
	if r.died && r.end == "" {
		status = store.Abandoned
	}
	newer, late := strings.HasSuffix(f.Reason, "a newer tick was due"), strings.HasSuffix(f.Reason, "the starting deadline has passed")
	ordered, ready := strings.HasSuffix(f.Reason, "a run was ordered in the pause"), f.Tick
	if len(w.prior) > 0 {
		ready, _ = w.ready(f.Tick)
	}
	switch mayRepeat := w.p.Interrupted == Rerun && dead < maxDeaths && !w.p.Paused && !w.changed && inForce; {
	case f.Status != status, !strings.HasPrefix(f.Reason, r.reason) && !(r.broke() && strings.HasPrefix(f.Reason, "not run again")):
		w.fail("%s is %s (%s), and its run is %q (%s)", f.Tick, f.Status, f.Reason, r.end, r.reason)
	case newer && (w.p.Overlap != Replace || !w.newest().After(f.Tick)), ordered && !w.paused(),
		late && (w.p.StartingDeadline == 0 || w.now.Sub(ready) <= w.p.StartingDeadline):
		w.fail("%s is %s (%s), which it is not", f.Tick, f.Status, f.Reason)
	case mayRepeat && f.Status == store.Abandoned && !newer && !late && !ordered:
		w.fail("%s is %s (%s), and it may be repeated", f.Tick, f.Status, f.Reason)
	}
}

// judgeAnswer judges the outcome of a run by hand, or of a tick of a backfill.
func (w *world) judgeAnswer(f store.Outcome) {
	of := workOf(f.Request, f.Tick)
	if o, ok := w.answers[of]; ok {
		w.fail("%s has two outcomes: %s and %s", f.Request, o.Status, f.Status)
	}
	w.answers[of] = f
	if f.Token != 0 {
		w.judgeRun(f)
		return
	} else if store.BackfillOf(f.Request) != 0 {
		return
	}
	o := w.asked[slices.IndexFunc(w.asked, func(o store.Order) bool { return o.Name == f.Request })]
	all, _ := w.attempts(of)
	missed := f.Status == store.Missed && w.now.After(o.Until)
	if overlap := f.Status == store.Skipped && w.p.Missed != RunAll && w.under(o.At, false); len(all) > 0 || !missed && !overlap {
		w.fail("%s is %s (%s), and has %d runs", f.Request, f.Status, f.Reason, len(all))
	}
}

// judgeClaim judges a claim, and notes the run.
func (w *world) judgeClaim(rec *store.Record) {
	for _, r := range w.runs { // what has died is known to be over by now
		r.to = cmp.Or(r.to, w.now)
	}
	newest, of, attempt := w.newest(), workOf(rec.Run.Request, rec.Run.Tick), rec.Run.Attempt
	before, dead := w.attempts(of)
	_, answered := w.answers[of]
	switch {
	case answered || attempt != len(before)+1:
		w.fail("%v is claimed as attempt %d, and has had %d, or its outcome", of, attempt, len(before))
	case attempt > 1 && (w.p.Interrupted != Rerun || dead >= maxDeaths || !before[len(before)-1].broke()):
		w.fail("%v is claimed again, and was %s", of, before[len(before)-1].end)
	case of.request == "":
		w.judgeTick(rec, newest)
	case !of.tick.IsZero():
		w.judgeFill(rec, newest)
	default:
		w.judgeByHand(rec)
	}
	w.runs = append(w.runs, &run{work: of, token: rec.Token, from: w.now, free: of.request == "" || !newest.After(rec.Watermark)})
}

// judgeTick judges the claim of a tick.
func (w *world) judgeTick(rec *store.Record, newest time.Time) {
	tick, first, now := rec.Run.Tick, rec.Run.Attempt == 1, w.now
	if rec.Run.Armed {
		now, newest = tick, tick
	}
	ready, _ := w.ready(tick)
	switch {
	case !tick.After(rec.Watermark), tick.After(now) || tick.Sub(w.now) > w.p.Lead() || !w.p.Ticks.Last(tick).Equal(tick),
		slices.ContainsFunc(w.runs, func(r *run) bool { return r.work == work{"", tick} && w.cancels[r.token] }):
		w.fail("%s is claimed, and is cancelled, has its outcome, or is no tick that is due", tick)
	case w.paused() || w.p.Paused || first && w.inPause(tick):
		w.fail("%s is claimed, and is paused", tick)
	case first && (w.passedOver() || ready.IsZero()):
		w.fail("%s is claimed, and an order has waited for another tick, or jobs before are not over", tick)
	case first && w.p.Missed != RunAll && !tick.Equal(newest), !first && w.p.Overlap == Replace && newest.After(tick) && !w.inPause(newest):
		w.fail("%s is claimed, and %s is due", tick, newest)
	case first && w.deadline() > 0 && now.Sub(ready) > w.deadline(),
		!first && w.p.StartingDeadline > 0 && !ready.IsZero() && now.Sub(ready) > w.p.StartingDeadline:
		w.fail("%s is claimed too late", tick)
	case first && w.p.Overlap == SkipOverlap && w.p.Missed != RunAll && !w.p.Follows() && w.under(tick, true):
		w.fail("%s is claimed, and came due under a run", tick)
	}
}

// judgeFill judges the claim of a tick of a backfill.
func (w *world) judgeFill(rec *store.Record, newest time.Time) {
	tick, b := rec.Run.Tick, w.fill
	switch {
	case rec.Run.Order != b.Seq || b.Cancelled.Seq != 0 || !within(tick, b.Spans) || !w.changed && !w.p.Ticks.Last(tick).Equal(tick),
		w.paused() || w.p.Paused:
		w.fail("%s is claimed for the backfill %d, or the job is paused", tick, rec.Run.Order)
	case newest.After(rec.Watermark) && !w.p.Follows(): // one write settles few ticks of a follower
		w.fail("%s is claimed for a backfill, and %s is due", tick, newest)
	}
}

// judgeByHand judges the claim of a run by hand.
func (w *world) judgeByHand(rec *store.Record) {
	for _, o := range w.asked {
		switch {
		case o.Name == rec.Run.Request && rec.Run.Order != o.Seq:
			w.fail("%s is claimed, and its order is not served", o.Name)
		case o.Name == rec.Run.Request, w.waits(o) && rec.Run.Order == 0:
			return
		case w.waits(o):
			w.fail("%s is claimed, and %s was ordered before", rec.Run.Request, o.Name)
		}
	}
}

// passedOver reports whether an order has waited while a tick was run, and would do so again.
func (w *world) passedOver() bool {
	n := len(w.runs) - 1
	return n >= 0 && w.runs[n].request == "" && !w.runs[n].back &&
		slices.ContainsFunc(w.asked, func(o store.Order) bool { return w.waits(o) && o.At.Before(w.runs[n].from) })
}

// sleeps judges until when plan says that nothing is due: asked again just before, there is nothing to run.
func (w *world) sleeps(v View) {
	a := w.p.Next(v, &Observation{At: w.now, LookedAt: w.now, Fresh: true}, Clock{Low: w.now, Drift: 100})
	if _, todo := w.p.Claim(v); todo != (a.What == Acquire) {
		w.fail("there is something to do: %t, and a replica does %+v", todo, a)
	}
	wanted := cmp.Or(w.p.Wanted(v), w.now.Add(30*24*time.Hour))
	for _, v.Now = range []time.Time{wanted.Add(-1), w.now.Add(a.After - 1)} {
		if next, _ := w.p.Claim(v); (a.What == Wait || a.What == Await) && v.Now.After(w.now) && next.Run {
			w.fail("nothing is said to be due until %s, and %s is run before", v.Now, next.Record.Run.Tick)
		}
	}
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

// over judges what has become of everything, once there is nothing left to do.
func (w *world) over() {
	for _, o := range w.asked {
		if all, _ := w.attempts(work{request: o.Name}); w.waits(o) || len(all) > 0 && w.answers[work{request: o.Name}].Status == "" {
			w.fail("%s was ordered, and has no outcome", o.Name)
		}
	}
	n := 0
	for of := range w.answers {
		if of.request == store.BackfillRequest(w.fill.Seq) {
			n++
		}
	}
	if w.fill.Cancelled.Seq == 0 && !w.p.Paused && !w.changed && n != w.fill.Ticks {
		w.fail("the backfill has %d ticks, and %d outcomes", w.fill.Ticks, n)
	}
}
