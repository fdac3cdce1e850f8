package plan

import (
	"cmp"
	"maps"
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
	filled := next.Backfill.Done() - last.Backfill.Done()
	if filled > 0 && (what == "stalls" || what == "ends") { // the run was one of a backfill
		r := w.last()
		also = append(also, store.Outcome{Tick: r.tick, Request: r.request, Status: r.end, Reason: r.reason, Token: r.token})
	}
	switch {
	case next.Token != last.Token && (what != "claims" || next.Token != last.Token+1):
		w.Fatalf("the token goes from %d to %d", last.Token, next.Token)
	case next.Backfill.Seq == last.Backfill.Seq && filled != int64(len(also)):
		w.Fatalf("%d outcomes of the backfill are counted, and there are %d", filled, len(also))
	}
	mark, ticks := last.Watermark, every(last.Definition.Spec)
	for _, f := range slices.Backward(news) {
		switch changes := next.Definition.Spec != last.Definition.Spec && f.Count == 0 && !f.From.IsZero(); {
		case f.Request != "":
			also = append(also, f)
			continue
		case f.Token != 0:
			if !ticks.Next(mark).Equal(f.Tick) {
				w.Fatalf("%s has its outcome, and the tick after %s has none", f.Tick, mark)
			}
			w.judgeRun(f)
		case changes:
			w.judgeChange(f, ticks.Next(mark))
		default:
			ticks = every(next.Definition.Spec)
			w.judgePassed(f, mark, ticks)
		}
		mark = f.Tick
		switch f.Status {
		case store.Succeeded:
			w.streak, w.succeeded = 0, f.Tick
		case store.Failed, store.Stalled:
			w.streak++
		}
	}
	for _, f := range also {
		w.judgeAnswer(f)
	}
	w.judgeRecord(&last, &next, mark)
	next.History = next.History[:min(len(next.History), 20)]
	w.rec = next
}

// judgeRecord judges what a record says of all that came before.
func (w *world) judgeRecord(last, next *store.Record, mark time.Time) {
	was, is := !last.Orders.Paused.At.IsZero(), !next.Orders.Paused.At.IsZero()
	if was && !is || !is && w.streak >= w.p.PauseAfter && w.orders().Resumed.Token >= last.Token {
		w.streak = 0
	}
	switch tooMany := w.p.PauseAfter > 0 && w.streak >= w.p.PauseAfter; {
	case !next.Watermark.Equal(mark) || mark.After(w.now) && mark.After(last.Watermark):
		w.Fatalf("the watermark is %s, and outcomes reach to %s", next.Watermark, mark)
	case !LastSuccess(next).Equal(w.succeeded):
		w.Fatalf("the newest tick that has succeeded is %s, and the record says %s", w.succeeded, LastSuccess(next))
	case next.Definition.Spec == w.p.Spec && !next.Due.Equal(w.p.Unclaimed(next)):
		w.Fatalf("the record says that %s is due", next.Due)
	case is != tooMany:
		w.Fatalf("the job has failed %d times in a row, and paused itself: %t", w.streak, is)
	case is && !was:
		w.selfs = append(w.selfs, store.Span{From: w.now, To: forever})
	}
}

// judgeChange judges ticks that were due under the definition before: due is the first of them.
func (w *world) judgeChange(f store.Outcome, due time.Time) {
	switch {
	case due.Equal(w.p.Ticks.Last(w.now)) && !f.Tick.Before(due):
		w.Fatalf("%s is dropped, which both schedules name", due)
	case f.Reason != ScheduleChanged && (f.Reason != Paused || !w.inPause(due)):
		w.Fatalf("%s is %s (%s), and the schedule has changed", due, f.Status, f.Reason)
	}
}

// judgePassed judges the outcome of ticks that no replica has run. Of very many only the first and the last are looked at.
func (w *world) judgePassed(f store.Outcome, mark time.Time, ticks grid) {
	n, some := ticks.Count(mark, f.Tick, 1e9), 100*time.Duration(ticks)
	switch {
	case n == 0 || !ticks.Last(f.Tick).Equal(f.Tick):
		w.Fatalf("%s is no tick after %s", f.Tick, mark)
	case n > 1 && (!f.From.Equal(mark) || f.Count != min(n, maxCount) || f.AtLeast != (n > maxCount)), n == 1 && !f.From.IsZero():
		w.Fatalf("%d ticks after %s have the outcome %+v", n, mark, f)
	}
	for tick := ticks.Next(mark); !tick.After(f.Tick); tick = ticks.Next(tick) {
		if all, _ := w.attempts(work{tick: tick}); len(all) > 0 || w.against(tick, false)[f.Reason] != f.Status {
			w.Fatalf("%s is %s: %s, which it is not, or it was run", tick, f.Status, f.Reason)
		}
		if tick.Sub(mark) > some && f.Tick.Sub(tick) > some {
			tick = ticks.Last(f.Tick.Add(-some))
		}
	}
}

// judgeAnswer judges the outcome of a run by hand, or of a tick of a backfill.
func (w *world) judgeAnswer(f store.Outcome) {
	of, fill := workOf(f.Request, f.Tick), store.BackfillOf(f.Request)
	if w.answered[of] {
		w.Fatalf("%s has a second outcome: %s", f.Request, f.Status)
	}
	w.answered[of] = true
	if f.Token != 0 {
		w.judgeRun(f)
		return
	} else if fill != 0 {
		return
	}
	all := w.orders().Requests
	q := all[slices.IndexFunc(all, func(q store.Request) bool { return q.Name == f.Request })]
	runs, _ := w.attempts(of)
	missed := f.Status == store.Missed && w.now.After(q.Until)
	if overlap := f.Status == store.Skipped && w.p.Missed != RunAll && w.under(q.At, false); len(runs) > 0 || !missed && !overlap {
		w.Fatalf("%s is %s (%s), and has %d runs", f.Request, f.Status, f.Reason, len(runs))
	}
}

// judgeRun judges the outcome of a run.
func (w *world) judgeRun(f store.Outcome) {
	i := slices.IndexFunc(w.runs, func(r *run) bool { return r.token == f.Token && r.work == workOf(f.Request, f.Tick) })
	if i < 0 {
		w.Fatalf("%s %s has the outcome of another run", f.Tick, f.Request)
	}
	r, fill := w.runs[i], w.orders().Backfill
	all, dead := w.attempts(r.work)
	over := store.BackfillOf(f.Request) != 0 && (store.BackfillOf(f.Request) != fill.Seq || !fill.On())
	if f.Status == store.Cancelled && (r.back || r.broke()) { // no function has returned that
		if !w.cancelled(r.work) && !over || !strings.HasPrefix(f.Reason, "by ann") {
			w.Fatalf("%s is cancelled (%s), and was not", f.Tick, f.Reason)
		}
		return
	}
	if r.back && len(all) > 0 { // another attempt was given up: its token is spent, and the outcome is that of the attempt before
		r = all[len(all)-1]
	}
	reason := f.Reason
	for _, why := range w.againstMore(f.Tick) {
		reason = strings.TrimSuffix(strings.TrimSuffix(reason, ", and "+why), ": "+why)
	}
	repeats := w.p.Interrupted == Rerun && dead < maxDeaths && !w.p.Paused && !w.changed && !over && !r.tick.IsZero()
	switch {
	case f.Status != r.end, reason != r.reason && !(r.broke() && reason == "not run again"):
		w.Fatalf("%s is %s (%s), and its run is %q (%s)", f.Tick, f.Status, f.Reason, r.end, r.reason)
	case repeats && r.broke() && reason == f.Reason:
		w.Fatalf("%s is %s (%s), and it may be repeated", f.Tick, f.Status, f.Reason)
	}
}

// judgeClaim judges a claim, and notes the run. One ahead of its tick has to be right at the tick.
func (w *world) judgeClaim() {
	now, claim := w.now, &w.rec.Run
	if claim.Armed {
		w.now = claim.Tick
		defer func() { w.now = now }()
	}
	of := workOf(claim.Request, claim.Tick)
	newest, due := w.newest(), w.newest().After(w.rec.Watermark)
	before, dead := w.attempts(of)
	switch tick := of.tick; {
	case w.answered[of] || claim.Request == "" && w.cancelled(of) || claim.Attempt != len(before)+1:
		w.Fatalf("%v is claimed as attempt %d, and has had %d, or its outcome, or is cancelled", of, claim.Attempt, len(before))
	case claim.Attempt > 1 && (w.p.Interrupted != Rerun || dead >= maxDeaths || !before[len(before)-1].broke()):
		w.Fatalf("%v is claimed again, and was %s", of, before[len(before)-1].end)
	case tick.IsZero():
		if q, ok := w.waiting(); ok && claim.Order != 0 && (q.Name != claim.Request || q.Seq != claim.Order) {
			w.Fatalf("%s is claimed, and %s was ordered before", claim.Request, q.Name)
		}
	case w.paused() || w.p.Paused:
		w.Fatalf("%s is claimed in a pause", tick)
	case claim.Request == "":
		w.judgeTick(tick, now)
	case due && !w.p.Follows(): // one write settles few ticks of a follower
		w.Fatalf("%s is claimed for a backfill, and %s is due", tick, newest)
	default:
		w.judgeFill(claim)
	}
	w.runs = append(w.runs, &run{work: of, token: w.rec.Token, from: w.now, free: claim.Request == "" || !due})
}

// judgeTick judges the claim of a tick at an instant.
func (w *world) judgeTick(tick, at time.Time) {
	q, waits := w.waiting()
	passedOver := waits && len(w.runs) > 0 && w.last().request == "" && !w.last().back && q.At.Before(w.last().from)
	switch ready, _, _ := w.ready(tick); {
	case !tick.After(w.rec.Watermark), tick.After(w.now) || tick.Sub(at) > w.p.Lead() || !w.p.Ticks.Last(tick).Equal(tick):
		w.Fatalf("%s is claimed, and has its outcome, or is no tick that is due", tick)
	case w.rec.Run.Attempt > 1:
		if why := w.againstMore(tick); len(why) > 0 && !ready.IsZero() {
			w.Fatalf("%s is claimed again, and %s", tick, why[0])
		}
	case passedOver || ready.IsZero():
		w.Fatalf("%s is claimed, and %s has waited for another tick, or jobs before are not over", tick, q.Name)
	case len(w.against(tick, true)) > 0:
		w.Fatalf("%s is claimed, and is %v", tick, slices.Collect(maps.Keys(w.against(tick, true))))
	}
}

// judgeFill judges the claim of a tick of a backfill.
func (w *world) judgeFill(claim *store.Run) {
	if b := w.orders().Backfill; claim.Order != b.Seq || !b.On() || !within(claim.Tick, b.Spans) || !w.changed && !w.p.Ticks.Last(claim.Tick).Equal(claim.Tick) {
		w.Fatalf("%s is claimed for the backfill %d", claim.Tick, claim.Order)
	}
}

// sleeps judges until when plan says that nothing is due: asked again just before, there is nothing to run.
func (w *world) sleeps(v View) {
	a := w.p.Next(v, &Observation{At: w.now, LookedAt: w.now, Fresh: true}, Clock{Low: w.now, Drift: 100})
	if _, todo := w.p.Claim(v); todo != (a.What == Acquire) {
		w.Fatalf("there is something to do: %t, and a replica does %+v", todo, a)
	}
	if a.What != Wait && a.What != Await {
		return
	}
	wanted := cmp.Or(w.p.Wanted(v), w.now.Add(30*24*time.Hour))
	for _, until := range []time.Time{wanted, w.now.Add(a.After - minIdle)} { // no wait is shorter than minIdle
		v.Now = until.Add(-1)
		if next, _ := w.p.Claim(v); v.Now.After(w.now) && next.Run {
			w.Fatalf("nothing is said to be due until %s, and %s is run before", until, next.Record.Run.Tick)
		}
	}
}

// idle judges that there is nothing to do.
func (w *world) idle(v View) {
	if early(v) || v.Request != "" || v.Claims == NoRun {
		return
	}
	q, waits := w.waiting()
	switch newest := w.newest(); {
	case newest.After(w.rec.Watermark) && !w.paused():
		w.Fatalf("%s is due, and there is nothing to do", newest)
	case !w.rec.Orders.Paused.At.IsZero() && !within(w.now.Add(1), w.selfs):
		w.Fatalf("the job was resumed, the record says that it is paused, and there is nothing to do")
	case waits && !unsettled(&w.rec):
		w.Fatalf("%s is ordered, and there is nothing to do", q.Name)
	}
}

// over judges what has become of everything, once there is nothing left to do.
func (w *world) over() {
	b, n := w.orders().Backfill, 0
	for of := range w.answered {
		if of.request == store.BackfillRequest(b.Seq) {
			n++
		}
	}
	if b.On() && !w.p.Paused && !w.changed && n != b.Ticks {
		w.Fatalf("the backfill has %d ticks, and %d outcomes", b.Ticks, n)
	}
	for _, r := range w.runs {
		if r.request != "" && r.tick.IsZero() && !r.back && !w.answered[r.work] {
			w.Fatalf("%s has run, and has no outcome", r.request)
		}
	}
	if q, ok := w.waiting(); ok {
		w.Fatalf("%s was ordered, and has no outcome", q.Name)
	}
}
