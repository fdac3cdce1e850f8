package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// write puts a record in the place of the last one, and judges what is new in it. also are outcomes of a backfill, which a
// record only counts.
func (w *world) write(what string, next record.Record, also ...event.Outcome) {
	last := w.rec
	news := next.History[:len(next.History)-len(last.History)]
	w.say("%s: token %d, %s %s/%d %s, through %s, %q %v", what, next.Token, next.Run.Status, next.Run.Tick.Format(time.TimeOnly),
		next.Run.Attempt, next.Run.Request, next.Watermark.Format(time.TimeOnly), told(&record.Record{History: news}), also)
	filled := next.Backfill.Done() - last.Backfill.Done()
	if filled > 0 && (what == "stalls" || what == "ends") { // the run was one of a backfill
		also = append(also, LastOutcome(&last, w.last().end, w.last().reason))
	}
	w.never(next.Token != last.Token && (what != "claims" || next.Token != last.Token+1), "the token goes from %d to %d", last.Token, next.Token)
	w.never(next.Backfill.Seq == last.Backfill.Seq && filled != int64(len(also)), "the backfill counts %d outcomes: %v", filled, also)
	mark, ticks, due := last.Watermark, every(last.Definition.Spec), time.Time{}
	for _, f := range slices.Backward(news) {
		if f.Request != "" {
			also = append(also, f)
			continue
		}
		switch changes := next.Definition.Spec != last.Definition.Spec && f.Count == 0 && !f.From.IsZero(); {
		case f.Token != 0:
			w.never(!ticks.Next(mark).Equal(f.Tick), "%s has its outcome, and the tick after %s has none", f.Tick, mark)
			w.judgeRun(f)
		case changes:
			due = cmp.Or(due, ticks.Next(mark)) // the first tick that is dropped
			w.never(due.Equal(w.p.Ticks.Last(w.now)) && !f.Tick.Before(due), "%s is dropped, which both schedules name", due)
			paused := f.Reason == Paused && (w.p.Paused || w.inPause(due) && w.inPause(f.Tick))
			w.never(f.Reason != ScheduleChanged && !paused, "%s to %s are not %s", due, f.Tick, f.Reason)
		default:
			ticks = every(next.Definition.Spec)
			w.judgePassed(f, mark, ticks)
		}
		mark = f.Tick
		switch f.Status {
		case event.Succeeded:
			w.streak, w.succeeded = 0, f.Tick
		case event.Failed, event.Stalled:
			w.streak++
		}
	}
	for _, f := range also {
		w.judgeAnswer(f)
	}
	w.never(!next.Watermark.Equal(mark) || mark.After(w.now) && mark.After(last.Watermark), "the watermark is not %s", mark)
	w.never(!LastSuccess(&next).Equal(w.succeeded), "the newest success is %s, not %s", w.succeeded, LastSuccess(&next))
	w.never(next.Definition.Spec == w.p.Spec && !next.Due.Equal(w.p.Unclaimed(&next)), "the record says that %s is due", next.Due)
	w.judgeSelfPause(last.Token, !last.Orders.Paused.At.IsZero(), !next.Orders.Paused.At.IsZero())
	next.History = next.History[:min(len(next.History), 20)]
	w.rec = next
}

// judgeSelfPause judges whether a record says that the job has paused itself, and did so before.
func (w *world) judgeSelfPause(token int64, was, is bool) {
	resumed := w.orders().Resumed
	if was && !is || !is && w.streak >= w.p.PauseAfter && resumed.Token >= token {
		w.streak = 0
	}
	w.never(is != (w.p.PauseAfter > 0 && w.streak >= w.p.PauseAfter), "%d failures, and paused itself: %t", w.streak, is)
	if is && !was && resumed.Token < token { // else the resume came before the outcome was known
		w.selfs = append(w.selfs, record.Span{From: w.now, To: forever})
	}
}

// judgePassed judges the outcome of ticks that no replica has run. Of very many only the first and the last are looked at.
func (w *world) judgePassed(f event.Outcome, mark time.Time, ticks grid) {
	n, some := ticks.Count(mark, f.Tick, 1e9), 100*time.Duration(ticks)
	several := n > 1 && f.From.Equal(mark) && f.Count == min(n, maxCount) && f.AtLeast == (n > maxCount)
	w.never(!several && (n != 1 || !f.From.IsZero()) || !ticks.Last(f.Tick).Equal(f.Tick), "%d ticks after %s have %+v", n, mark, f)
	for tick := ticks.Next(mark); !tick.After(f.Tick); tick = ticks.Next(tick) {
		runs, _ := w.attempts(work{tick: tick})
		w.never(len(runs) > 0 || w.against(tick, false)[f.Reason] != f.Status, "%s is not %s (%s), or was run", tick, f.Status, f.Reason)
		if tick.Sub(mark) > some && f.Tick.Sub(tick) > some {
			tick = ticks.Last(f.Tick.Add(-some))
		}
	}
}

// judgeAnswer judges the outcome of a run by hand, or of a tick of a backfill.
func (w *world) judgeAnswer(f event.Outcome) {
	of := workOf(f.Request, f.Tick)
	w.never(w.answered[of], "%s has a second outcome: %s", f.Request, f.Status)
	w.answered[of] = true
	if f.Token != 0 {
		w.judgeRun(f)
	} else if of.tick.IsZero() {
		runs, _ := w.attempts(of)
		all := w.orders().Requests
		q := all[slices.IndexFunc(all, func(q record.Request) bool { return q.Name == f.Request })]
		missed := f.Status == event.Missed && w.now.After(q.Until)
		overlap := f.Status == event.Skipped && w.p.Late.Missed != RunAll && w.under(q.At, false)
		w.never(len(runs) > 0 || !missed && !overlap, "%s is %s (%s), and has %d runs", f.Request, f.Status, f.Reason, len(runs))
	}
}

// judgeRun judges the outcome of a run.
func (w *world) judgeRun(f event.Outcome) {
	i := slices.IndexFunc(w.runs, func(r *run) bool { return r.token == f.Token && r.work == workOf(f.Request, f.Tick) })
	w.never(i < 0, "%s %s has the outcome of another run", f.Tick, f.Request)
	r, fill, of := w.runs[i], w.orders().Backfill, event.BackfillOf(f.Request)
	all, dead := w.attempts(r.work)
	over := of != 0 && (of != fill.Seq || !fill.On())
	if f.Status == event.Cancelled && (r.back || r.broke()) { // no function has returned that
		w.never(!w.cancelled(r.work, false) && !over || !strings.HasPrefix(f.Reason, "by ann"), "%s is not cancelled %s", f.Tick, f.Reason)
		return
	}
	if r.back && len(all) > 0 { // another attempt was given up: its token is spent, and the outcome is that of the attempt before
		r = all[len(all)-1]
	}
	reason := f.Reason
	for why := range w.againstMore(f.Tick) {
		reason = strings.TrimSuffix(strings.TrimSuffix(reason, ", and "+why), ": "+why)
	}
	untrue := f.Status != r.end || reason != r.reason && !(r.broke() && reason == "not run again")
	w.never(untrue, "%s is %s (%s), and its run is %q (%s)", f.Tick, f.Status, f.Reason, r.end, r.reason)
	repeats := w.p.Interrupted == Rerun && dead < maxDeaths && !w.p.Paused && !w.changed && !over && !r.tick.IsZero()
	w.never(repeats && r.broke() && reason == f.Reason, "%s is %s (%s), and it may be repeated", f.Tick, f.Status, f.Reason)
}

// judgeClaim judges a claim, and notes the run. One ahead of its tick has to be right at the tick. A manual call need not wait
// for what was ordered before.
func (w *world) judgeClaim(called string) {
	now, claim := w.now, &w.rec.Run
	if claim.Armed {
		w.never(claim.Tick.Sub(now) > w.p.Lead(), "%s is claimed at %s", claim.Tick, now)
		w.now = claim.Tick
		defer func() { w.now = now }()
	}
	of, newest := workOf(claim.Request, claim.Tick), w.newest()
	before, dead := w.attempts(of)
	w.never(w.answered[of] || claim.Attempt != len(before)+1, "%v is claimed as attempt %d, not %d", of, claim.Attempt, len(before)+1)
	again := claim.Attempt == 1 || w.p.Interrupted == Rerun && dead < maxDeaths && before[len(before)-1].broke()
	w.never(!again, "%v is claimed again", of)
	q := append(w.waiting(), record.Request{})[0] // the first that waits
	due := newest.After(w.rec.Watermark)
	passedOver := q.Seq > 0 && len(w.runs) > 0 && w.last().request == "" && !w.last().back && q.At.Before(w.last().from)
	switch b := w.orders().Backfill; {
	case of.tick.IsZero():
		other := claim.Request != called && (q.Name != claim.Request || q.Seq != claim.Order)
		w.never(other, "%s is claimed, and %s was ordered before", claim.Request, q.Name)
		w.never(w.cancelled(of, true), "%s is claimed, and is cancelled", claim.Request)
	case claim.Request == "":
		w.never(passedOver && claim.Attempt == 1, "%s is claimed, and %s has waited for another tick", of.tick, q.Name)
		w.judgeTick(of.tick)
	default: // one write settles few ticks of a follower
		isOf := claim.Order == b.Seq && b.On() && within(of.tick, b.Spans) && (w.changed || w.p.Ticks.Last(of.tick).Equal(of.tick))
		w.never(!isOf || w.paused() || w.p.Paused, "%s is claimed for the backfill %d", of.tick, claim.Order)
		w.never(due && !w.p.Follows(), "%s is claimed for a backfill, and %s is due", of.tick, newest)
	}
	free := claim.Request == "" || !due && w.rec.Definition.Spec == w.p.Spec
	w.runs = append(w.runs, &run{work: of, token: w.rec.Token, from: now, free: free})
}

// judgeTick judges the claim of a tick.
func (w *world) judgeTick(tick time.Time) {
	due := tick.After(w.rec.Watermark) && !tick.After(w.now) && w.p.Ticks.Last(tick).Equal(tick)
	w.never(!due || w.cancelled(work{tick: tick}, true), "%s is claimed, and is cancelled, has its outcome, or is no tick that is due", tick)
	w.never(w.paused() || w.p.Paused, "%s is claimed in a pause", tick)
	ready, _, _ := w.ready(tick)
	if w.rec.Run.Attempt > 1 {
		why := w.againstMore(tick)
		w.never(len(why) > 0 && !ready.IsZero(), "%s is claimed again: %v", tick, why)
		return
	}
	why := w.against(tick, true)
	w.never(len(why) > 0 || ready.IsZero(), "%s is claimed, and jobs before are not over, or: %v", tick, why)
}

// sleeps judges until when plan says that nothing is due: asked again just before, there is nothing to run.
func (w *world) sleeps(v View) {
	v.Earliest = w.now
	a := Next(&w.p, v, &Observation{At: w.now, LookedAt: w.now, Fresh: true})
	_, todo := w.p.Claim(v)
	w.never(todo != (a.What == Acquire), "there is something to do: %t, and a replica does %+v", todo, a)
	wanted := cmp.Or(Wanted(&w.p, v), w.now.Add(30*24*time.Hour))
	for _, until := range []time.Time{wanted, w.now.Add(a.After - minIdle)} { // no wait is shorter than minIdle
		v.Now = until.Add(-1)
		next, _ := w.p.Claim(v)
		early := next.Run && v.Now.After(w.now) && (a.What == Wait || a.What == Await)
		w.never(early, "nothing is said to be due until %s, and %s is run before", until, next.Record.Run.Tick)
	}
}

// idle judges that there is nothing to do.
func (w *world) idle(v View) {
	if v.armed() || v.Request != "" || v.Claims == NoRun {
		return
	}
	w.never(w.newest().After(w.rec.Watermark) && !w.paused(), "%s is due, and there is nothing to do", w.newest())
	resumed := !w.rec.Orders.Paused.At.IsZero() && !within(w.now.Add(1), w.selfs)
	w.never(resumed, "the job was resumed, the record says that it is paused, and there is nothing to do")
	w.never(len(w.waiting()) > 0 && !unsettled(&w.rec), "%v are ordered, and there is nothing to do", w.waiting())
}

// over judges what has become of everything, once there is nothing left to do.
func (w *world) over() {
	b, done := w.orders().Backfill, w.rec.Backfill
	left := b.On() && (done.Seq != b.Seq || done.Done() != int64(b.Ticks))
	w.never(left && !w.p.Paused && !w.changed, "the backfill has %d ticks, and %d outcomes", b.Ticks, done.Done())
	for _, r := range w.runs {
		w.never(r.request != "" && r.tick.IsZero() && !r.back && !w.answered[r.work], "%s has run, and has no outcome", r.request)
	}
}
