package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

// A backfill runs ticks again that have their outcome. An operator orders it; see orders.go for how orders reach the replicas.
//
//   - Each of its ticks is claimed as any run is, in the record of the job, so no two runs of the
//     job take place at a time, and the one with the larger token is the later one.
//   - The claim moves the cursor of the backfill, and the write that settles the run counts its outcome. So each tick has one
//     outcome, whatever becomes of the replicas in between. Under Rerun a tick whose runner died is claimed again.
//   - A tick of the job that is due comes first, also before a further attempt of a tick of the
//     backfill. A manual run that was ordered does too.
//   - It never moves the watermark. Ticks that come due under its run are not skipped: they are due.
//   - While the job is paused it waits.

// inForce reports whether the backfill of that number is to be carried out for the record. One
// that was ordered for an entry which was deleted is not.
func inForce(r *record.Record, b *record.Backfill, seq int64) bool {
	return b.On() && b.Seq == seq && seq > r.Created.UnixMicro() && r.Backfill.Seq <= seq
}

// Backfills reports whether a tick of a backfill waits for a claim.
func (p *Policy) Backfills(v View) bool {
	tick, _ := p.nextBackfilled(v.Record, &v.Control.Backfill)
	return !tick.IsZero() && v.Claims == AnyRun && !p.Paused && !v.IsPaused()
}

// BackfillOver reports whether no tick of a backfill is left to claim.
func (p *Policy) BackfillOver(r *record.Record, b *record.Backfill) bool {
	tick, _ := p.nextBackfilled(r, b)
	return tick.IsZero()
}

// nextBackfilled returns the next tick of the backfill, and the attempt that it is to be. Zero:
// none is left, or none can be claimed.
func (p *Policy) nextBackfilled(r *record.Record, b *record.Backfill) (tick time.Time, attempt int) {
	if p.Ticks == nil || !inForce(r, b, b.Seq) {
		return time.Time{}, 0
	}
	through := time.Time{}
	if r.Backfill.Seq == b.Seq {
		if through = r.Backfill.Through; r.Backfill.Attempt > 0 {
			return through, r.Backfill.Attempt + 1
		}
		for _, o := range r.Backfill.Open {
			if !underWay(r, &o) {
				return o.Tick, o.Attempt + 1
			}
		}
	}
	return p.backfilledAfter(r, b, through), 1
}

// backfilledAfter returns the first tick of a backfill after an instant, zero if there is none, or if as many were claimed
// as a backfill may have: another schedule may have more of them than the schedule under which it was ordered.
func (p *Policy) backfilledAfter(r *record.Record, b *record.Backfill, through time.Time) time.Time {
	if done := &r.Backfill; done.Seq == b.Seq && done.Done()+int64(len(done.Open)) >= maxCount {
		return time.Time{}
	}
	for _, s := range b.Spans {
		if !s.To.After(through) {
			continue
		}
		tick := p.Ticks.Next(instant.Later(s.From, through))
		if !tick.IsZero() && !tick.After(s.To) && !tick.After(r.Watermark) {
			return tick
		}
	}
	return time.Time{}
}

// settleBackfilled counts the outcome of the last run, which was one of a backfill.
func settleBackfilled(r *record.Record, f event.Outcome) {
	b := &r.Backfill
	if b.Seq != event.BackfillOf(f.Request) {
		return
	}
	b.Counts = counted(b.Counts, f.Status, 1)
	if IsFailure(&f) {
		b.Failed = instant.Later(b.Failed, f.Tick)
	}
}

// waitAgain has the tick of the last run wait for another attempt.
func waitAgain(r *record.Record) {
	if r.Backfill.Seq == r.Run.Order {
		r.Backfill.Through, r.Backfill.Attempt, r.Backfill.Deaths = r.Run.Tick, r.Run.Attempt, r.Run.Deaths
	}
}

// takeBackBackfilled has the backfill go on with the ticks of a claim that was given up. Several ticks keep its token, by which
// they can be cancelled.
func takeBackBackfilled(r *record.Record, claim *record.Record) {
	run, b := &claim.Run, &r.Backfill
	r.Orders.Returned = record.Returned{Tick: run.Tick, Order: run.Order}
	switch {
	case Several(claim):
		changeOpen(r, func(o *record.OpenTick) { o.Attempt-- })
	case run.Attempt == 1: // the cursor is before it
		b.Through, b.Attempt, b.Deaths = run.Tick.Add(-1), 0, 0
	default:
		b.Through, b.Attempt, b.Deaths = run.Tick, run.Attempt-1, run.Deaths
	}
}

// claimBackfill claims the next tick of the backfill that is in force. The run before has been settled, and a changed definition
// is in force by now, so what waits of the backfill is looked at once more.
func (c *claiming) claimBackfill() (changed bool) {
	r, fill, b := &c.next.Record, &c.v.Control.Backfill, &c.next.Record.Backfill
	if b.Seq == 0 && fill.Seq == 0 || c.next.Run || unsettled(r) {
		return false
	}
	changed = c.settleLeftBackfilled()
	due := !c.Follows() && c.Ticks.Last(c.v.Now).After(r.Watermark) // a due tick comes first
	tick, attempt := c.nextBackfilled(r, fill)
	if due || c.writing().full() || tick.IsZero() || c.v.Claims != AnyRun || c.Paused || c.paused {
		return changed
	}
	c.claim(tick, attempt)
	r.Run.Request, r.Run.Order = record.BackfillRequest(fill.Seq), fill.Seq
	if b.Seq != fill.Seq {
		*b = record.Backfilled{Seq: fill.Seq}
	}
	if fill.Parallel > 1 {
		c.claimSeveral(fill)
		return true
	}
	r.Run.Deaths = b.Deaths
	b.Through, b.Attempt, b.Deaths = tick, 0, 0
	return true
}

// settleDeadBackfilled decides about the last run, one of a backfill whose runner is gone: its tick waits
// for another attempt, or has its outcome. An operator may have cancelled that run, or all of the backfill.
func (c *claiming) settleDeadBackfilled() bool {
	r, next := c.v.Record, &c.next.Record
	end, cancelled := c.v.end(), true
	if !end.Cancel {
		end, cancelled = EndOfBackfill(r.Run.Order, &c.v.Control.Backfill)
	}
	status, reason := event.Abandoned, endReason(c.v)
	if cancelled { // its runner may not have known
		status, reason = event.Cancelled, CancelledBy(end)
	}
	next.Run.Deaths = deaths(r)
	if !leftBeside(r) { // else it has stalled
		next.Run.Status = status
	}
	again := !cancelled && r.Definition.Spec == c.Spec && inForce(r, &c.v.Control.Backfill, r.Run.Order)
	switch {
	case Several(r):
		c.next.Backfilled = append(c.next.Backfilled, settleOpen(next, func(o *record.OpenTick) openFate {
			switch {
			case o.Token != r.Token:
				return openFate{again: true}
			case again && c.Interrupted.repeats(o.Attempt, o.Deaths+1):
				o.Deaths, o.Token = o.Deaths+1, -o.Token
				return openFate{again: true}
			}
			return openFate{status: status, reason: reason, token: r.Token}
		})...)
	case again && r.Backfill.Seq == r.Run.Order && c.Interrupted.repeats(r.Run.Attempt, deaths(r)):
		waitAgain(next)
	default:
		c.tell(LastOutcome(r, status, reason))
	}
	return true
}

// EndOfBackfill returns by which order a backfill is cancelled; last is the last order. If that is another
// one, this one was cancelled before: else the other would have been refused. Who cancelled it the orders do not say any more.
func EndOfBackfill(seq int64, last *record.Backfill) (by record.End, ok bool) {
	if last.Seq > seq {
		return record.End{Seq: last.Seq, By: last.By, Reason: "another backfill was ordered"}, true
	}
	return last.Cancelled, last.Cancelled.Seq != 0 && last.Seq == seq
}

// settleLeftBackfilled settles the ticks of a backfill that wait for a claim, and are not to have one.
func (c *claiming) settleLeftBackfilled() (changed bool) {
	r := &c.next.Record
	fill, back := &r.Backfill, r.Orders.Returned
	n, returned := len(fill.Open), back.Order == fill.Seq
	if fill.Seq == 0 || c.Ticks == nil || n == 0 && fill.Attempt == 0 && !returned {
		return false
	}
	if n > 0 {
		c.next.Backfilled = append(c.next.Backfilled, settleOpen(r, c.fateOfLeft)...)
		waits := slices.ContainsFunc(fill.Open, func(o record.OpenTick) bool { return o.Token == r.Token })
		changed, returned = len(fill.Open) < n, returned && !waits
	} else {
		o := record.OpenTick{Tick: fill.Through, Attempt: fill.Attempt}
		if returned {
			o.Tick, o.Token = back.Tick, r.Token
		}
		f := c.fateOfLeft(&o)
		if changed = f.status != ""; changed {
			fill.Through, fill.Attempt, fill.Deaths = o.Tick, 0, 0
			c.tell(f.outcome(fill.Seq, &o))
		}
	}
	if changed && returned { // an order to cancel that claim would settle its ticks again
		r.Orders.Returned = record.Returned{}
	}
	return changed
}

// fateOfLeft returns what becomes of a tick of a backfill that waits for a claim. It gets none if an operator has cancelled the
// claim of it that was given up, or the backfill, or if the job repeats nothing any more, or does not have that tick any more. An
// order that is older than what the record says decides nothing. A tick that has never begun has no outcome when its backfill is
// cancelled, or when the schedule does not have it any more, as those after the cursor have none.
func (c *claiming) fateOfLeft(o *record.OpenTick) openFate {
	r, b := &c.next.Record, &c.v.Control.Backfill
	seq, why := r.Backfill.Seq, c.notBackfilled(o.Tick)
	over := b.Seq > seq || b.Seq == seq && !b.On()
	switch {
	case o.Token == r.Token && r.Orders.Returned.Order == seq && c.v.end().Cancel:
		return openFate{status: event.Cancelled, reason: CancelledBy(c.v.end()), token: r.Token}
	case o.Attempt == 0 && (over || why == ScheduleChanged):
		return openFate{}
	case b.Seq > seq:
		return openFate{status: event.Cancelled, reason: "another backfill was ordered"}
	case over:
		return openFate{status: event.Cancelled, reason: CancelledBy(b.Cancelled)}
	case b.Seq == seq && o.Attempt > 0 && why != "":
		return openFate{status: event.Abandoned, reason: why}
	}
	return openFate{again: true}
}

// notBackfilled returns why a tick of a backfill that waits gets no further attempt under the definition in force; empty: it gets one.
func (c *claiming) notBackfilled(tick time.Time) string {
	switch {
	case c.next.Record.Definition.Spec != c.Spec:
	case !c.Ticks.Last(tick).Equal(tick):
		return ScheduleChanged
	case c.Interrupted != Rerun:
		return "not run again"
	}
	return ""
}

// tell settles an outcome of a backfill with the claim.
func (c *claiming) tell(f event.Outcome) {
	settleBackfilled(&c.next.Record, f)
	c.next.Backfilled = append(c.next.Backfilled, f)
}

// A backfill may run several ticks at a time. Then one claim has several ticks, which its holder runs in parallel,
// under its lease and with its token. So whatever holds for the one run of a claim holds for all of
// them: the trust in the lease bounds them, and no other run of the job begins before they are over.
//
//   - The claim moves the cursor over its ticks, and the same write makes them open: Backfilled.Open has them from then on. A
//     tick leaves it with the write that counts its outcome, and in no other way but one: a tick that never began is dropped
//     with its backfill. So each has one outcome, whatever becomes of the replicas, and none is left out.
//   - Each tick has its outcome when its own run returns, and not only with the last of the claim. A write that
//     is repeated finds the tick open no more, and changes nothing.
//   - An open tick is under way if it has the token of a claim that has not ended. Otherwise it waits, and
//     comes before the ticks after the cursor.
//   - A claim of ticks that have waited has no new ones, so that who cancels a claim cancels all later claims
//     of its ticks, and nothing else.
//   - When all runs have returned the claim has ended. Only then does the next claim decide: what is due, or was
//     ordered manually, comes first.
//   - A tick whose runner died is run again alone, so that one which kills its runners costs the others one attempt.

// maxParallel is how many ticks of a backfill may run at a time.
const maxParallel = 16

// An Ended is how the attempt of one of several ticks has ended.
type Ended struct {
	Tick   time.Time
	Status event.Status // empty: it did not begin
	Reason string
	End    time.Time
}

// claimSeveral has the claim of the next tick of a backfill claim as many ticks as may run at a time.
func (c *claiming) claimSeveral(fill *record.Backfill) {
	r, b, most := &c.next.Record, &c.next.Record.Backfill, min(fill.Parallel, maxParallel)
	if c.Group != "" { // its slot is for one run
		most = 1
	}
	open := slices.Clone(b.Open) // the record that this one was cloned from shares it
	n := 0
	for n < min(most, len(open)) && (n == 0 || open[n].Deaths == 0) {
		open[n].Attempt, open[n].Token = open[n].Attempt+1, r.Token
		if n++; open[n-1].Deaths > 0 {
			break
		}
	}
	if n > 0 { // ticks that have waited are claimed without new ones
		most = n
	}
	for ; n < most; n++ {
		tick := c.backfilledAfter(r, fill, b.Through)
		if tick.IsZero() {
			break
		}
		open, b.Through = append(open, record.OpenTick{Tick: tick, Token: r.Token, Attempt: 1}), tick
		b.Open = open
	}
	b.Several, b.Open = true, open
	r.Run.Tick, r.Run.Attempt, r.Run.Deaths = open[0].Tick, open[0].Attempt, open[0].Deaths
}

// End notes how attempts of the ticks of a claim of several have ended. An end that it has noted before stays as it is.
func End(p *Policy, r *record.Record, all ...Ended) {
	settleOpen(r, func(o *record.OpenTick) openFate {
		i := slices.IndexFunc(all, func(e Ended) bool { return o.Token == r.Token && o.Tick.Equal(e.Tick) })
		if i < 0 {
			return openFate{again: true}
		}
		e := &all[i]
		if isDeath(e.Status, e.Reason) {
			o.Deaths++
		}
		switch {
		case e.Status == "":
			o.Attempt, o.Token = o.Attempt-1, -o.Token
		case cutShort(e.Status) && p.Interrupted.repeats(o.Attempt, o.Deaths):
			o.Token = -o.Token
		default:
			return openFate{status: e.Status, reason: e.Reason, token: r.Token}
		}
		return openFate{again: true}
	})
}

// OutcomeOfSeveral returns the outcome of an attempt of one of several ticks.
func OutcomeOfSeveral(r *record.Record, e Ended, attempt int) event.Outcome {
	f := LastOutcome(r, e.Status, e.Reason)
	f.Tick, f.Attempt, f.End = e.Tick, attempt, e.End
	return f
}

// An openFate says what becomes of an open tick.
type openFate struct {
	status event.Status // of its outcome; empty: it has none
	reason string
	token  int64 // of its outcome; zero: none
	again  bool  // it waits for another attempt, or goes on waiting
}

// outcome returns the outcome that an open tick of a backfill has by its fate.
func (f openFate) outcome(seq int64, o *record.OpenTick) event.Outcome {
	return event.Outcome{Tick: o.Tick, Request: record.BackfillRequest(seq), Status: f.status, Reason: f.reason, Attempt: max(1, o.Attempt), Token: f.token}
}

// settleOpen settles open ticks, and returns their outcomes. A tick that has neither an outcome nor waits is dropped.
func settleOpen(r *record.Record, fateOf func(o *record.OpenTick) openFate) (told []event.Outcome) {
	var open []record.OpenTick
	for _, o := range r.Backfill.Open {
		f := fateOf(&o)
		if f.again {
			open = append(open, o)
		}
		if f.status == "" {
			continue
		}
		out := f.outcome(r.Backfill.Seq, &o)
		if f.token == r.Token && r.Run.Order == r.Backfill.Seq && isBackfill(r) {
			out.Replica, out.Start = r.Run.Replica, begun(r)
		}
		settleBackfilled(r, out)
		told = append(told, out)
	}
	r.Backfill.Open = open
	return told
}

// isBackfill reports whether the last run is one of a backfill.
func isBackfill(r *record.Record) bool { return event.BackfillOf(r.Run.Request) != 0 }

// Several reports whether the last run is a claim of several ticks of a backfill. It may have a single tick left.
func Several(r *record.Record) bool {
	return r.Backfill.Several && r.Backfill.Seq == r.Run.Order && isBackfill(r)
}

// UnderWay returns the ticks of a claim of several that have no outcome. After the end of the claim there are none.
func UnderWay(r *record.Record) (all []record.OpenTick) {
	for _, o := range r.Backfill.Open {
		if underWay(r, &o) {
			all = append(all, o)
		}
	}
	return all
}

func underWay(r *record.Record, o *record.OpenTick) bool {
	return r.Run.Status == event.Running && Several(r) && o.Token == r.Token
}

// lastOpen returns the last tick without an outcome of the last claim, if that is one of several ticks; else the tick that is
// given.
func lastOpen(r *record.Record, tick time.Time) time.Time {
	for _, o := range r.Backfill.Open {
		if o.Token == r.Token || o.Token == -r.Token {
			tick = instant.Later(tick, o.Tick)
		}
	}
	return tick
}

// leftBeside reports whether the last run is a claim of several ticks one of which has stalled, and others have no outcome. If
// their lease is over, their runner died before it could report them.
func leftBeside(r *record.Record) bool {
	return r.Run.Status == event.Stalled && r.MayRun() && Several(r) &&
		slices.ContainsFunc(r.Backfill.Open, func(o record.OpenTick) bool { return o.Token == r.Token })
}

// changeOpen changes the ticks of the last claim, if that is one of several.
func changeOpen(r *record.Record, change func(o *record.OpenTick)) {
	r.Backfill.Open = slices.Clone(r.Backfill.Open) // the record that this one was cloned from shares it
	for i := range r.Backfill.Open {
		if o := &r.Backfill.Open[i]; o.Token == r.Token {
			change(o)
		}
	}
}

// FinishSeveral is Finish for a claim of several ticks, all of whose runs have returned.
func FinishSeveral(p *Policy, r *record.Record, all []Ended, end time.Time) record.Record {
	f := r.Clone()
	f.Run.Finished, f.Run.Stopping = end, false
	if f.Run.Status != event.Stalled {
		worst := worst(all)
		if f.Run.Status = worst.Status; HasFailed(&f) {
			f.Run.Error = worst.Reason
		}
	}
	End(p, &f, all...)
	f.Due = p.due(&f)
	return f
}

// worst returns the end that the record shows for the run: of a stall, or else of the first that has not succeeded.
func worst(all []Ended) Ended {
	last := Ended{Status: event.Succeeded}
	for _, e := range slices.Backward(all) {
		if e.Status != "" && e.Status != event.Succeeded && (last.Status != event.Stalled || e.Status == event.Stalled) {
			last = e
		}
	}
	return last
}

// StallSeveral is Stall for one of several ticks. The runs of the others go on as long as the lease is trusted.
func StallSeveral(p *Policy, r *record.Record, e Ended) record.Record {
	f := r.Clone()
	f.Run.Status, f.Run.Error, f.Run.Stopping = event.Stalled, e.Reason, true
	End(p, &f, e)
	f.Due = p.due(&f)
	return f
}

// A Range is what a backfill is asked for: both ends are in it.
type Range struct {
	From, To time.Time // To is zero: up to now, as far as ticks have their outcome
	All      bool      // all ticks of the range; otherwise those that were missed
	Parallel int       // how many are run at a time, up to maxParallel; 0 and 1: one
}

// PlanBackfill returns the backfill of a range, without what its order adds, and its first and last
// tick. former is the backfill that was ordered before. The error says, for people, why there is none.
func PlanBackfill(p *Policy, r *record.Record, now time.Time, of Range, former *record.Backfill) (b record.Backfill, first, last time.Time, err error) {
	if of.To.IsZero() {
		if of.To = settledBy(p, r, now); of.To.Before(of.From) && !of.From.After(now) {
			return b, first, last, fmt.Errorf("no tick since %s has an outcome yet", of.From.UTC().Format(time.RFC3339))
		}
	}
	if err := of.check(p, r, now); err != nil {
		return b, first, last, err
	}
	b = record.Backfill{From: of.From.UTC(), To: of.To.UTC(), All: of.All}
	if of.Parallel > 1 {
		b.Parallel = of.Parallel
	}
	b.Spans = []record.Span{{From: b.From.Add(-1), To: b.To}}
	if !of.All {
		if b.Spans, err = missedIn(r, b.Spans[0]); err != nil {
			return b, first, last, err
		}
		b.Spans = without(b.Spans, madeUp(p.Ticks, r, former))
	}
	kept := b.Spans[:0]
	for _, s := range b.Spans {
		n := p.Ticks.Count(s.From, s.To, maxCount+1-b.Ticks)
		if n == 0 {
			continue
		}
		if b.Ticks += n; b.Ticks > maxCount {
			return b, first, last, fmt.Errorf("the range has more than %d ticks: order it in parts, one after the other", maxCount)
		}
		s.To = p.Ticks.Last(s.To) // no schedule of later on is to add ticks behind the last one
		kept = append(kept, s)
	}
	if b.Spans = kept; b.Ticks > 0 {
		return b, p.Ticks.Next(kept[0].From), p.Ticks.Last(kept[len(kept)-1].To), nil
	}
	if of.All {
		return b, first, last, fmt.Errorf("no tick of the schedule is in the range")
	}
	return b, first, last, fmt.Errorf("no tick of the range was missed, or the backfill before has made up for it: to run those again that have another outcome, ask for all")
}

// settledBy returns the present, or the last tick with an outcome if one that has come has none yet.
func settledBy(p *Policy, r *record.Record, now time.Time) time.Time {
	if next := p.Ticks.Next(r.Watermark); next.IsZero() || next.After(now) {
		return now
	}
	return r.Watermark
}

// FirstTicks returns the first ticks of a backfill, up to so many.
func FirstTicks(ticks Ticks, spans []record.Span, most int) (all []time.Time) {
	for _, s := range spans {
		for tick := ticks.Next(s.From); !tick.IsZero() && !tick.After(s.To) && len(all) < most; tick = ticks.Next(tick) {
			all = append(all, tick)
		}
	}
	return all
}

// check returns what is wrong with a range.
func (of Range) check(p *Policy, r *record.Record, now time.Time) error {
	switch first := p.Ticks.Next(r.Watermark); {
	case of.From.IsZero():
		return fmt.Errorf("from is missing: the range has both ends")
	case of.From.UTC().Year() < 1 || of.To.UTC().Year() > 9999:
		return fmt.Errorf("the range is beyond the years 1 to 9999")
	case of.To.Before(of.From):
		return fmt.Errorf("to is %s, before from, %s", of.To.UTC().Format(time.RFC3339), of.From.UTC().Format(time.RFC3339))
	case of.To.After(now):
		return fmt.Errorf("to is %s, which is in the future: ticks to come are run when they are due", of.To.UTC().Format(time.RFC3339))
	case of.Parallel < 0 || of.Parallel > maxParallel:
		return fmt.Errorf("%d ticks at a time: want 1 to %d", of.Parallel, maxParallel)
	case of.Parallel > 1 && p.Group != "":
		return fmt.Errorf("%d ticks at a time: a run of the job takes a slot of the group %s, and the ticks of a backfill share one: leave parallel out", of.Parallel, p.Group)
	case r.Definition.Spec != "" && r.Definition.Spec != p.Spec:
		return fmt.Errorf("another schedule of the job is in force: ask where that is configured")
	case !first.IsZero() && !first.After(of.To):
		return fmt.Errorf("the tick %s has no outcome yet: want a range that ends before it", first.UTC().Format(time.RFC3339))
	}
	return nil
}

// missedIn returns where the ticks are that the record shows as missed. Ticks that were missed while
// the schedule changed were of the schedule before, and do not count.
func missedIn(r *record.Record, within record.Span) (spans []record.Span, err error) {
	since, all := reach(r)
	if within.From.Before(since) && !all {
		return nil, fmt.Errorf("the record knows the outcomes of the ticks after %s, and of none before: ask for a range that begins after it, or for all ticks of the range", since.UTC().Format(time.RFC3339Nano))
	}
	for _, f := range slices.Backward(r.History) {
		if f.Request != "" || f.Status != event.Missed || !f.From.IsZero() && f.Count == 0 {
			continue
		}
		s := spanOf(&f)
		s.From, s.To = instant.Later(s.From, within.From), instant.Earlier(s.To, within.To)
		if s.To.After(s.From) {
			spans = append(spans, s)
		}
	}
	return spans, nil
}

// madeUp returns where all ticks have succeeded in a backfill, for certain. The record counts the outcomes of a backfill and knows
// the last failure: so nothing is known once a tick had another outcome than these, and nothing up to that failure.
func madeUp(ticks Ticks, r *record.Record, of *record.Backfill) (spans []record.Span) {
	b := &r.Backfill
	if of.Seq == 0 || b.Seq != of.Seq || b.Attempt > 0 || len(b.Open) > 0 || isBackfill(r) && r.Run.Status == event.Running {
		return nil
	}
	known, n := b.Counts[event.Succeeded]+b.Counts[event.Failed]+b.Counts[event.Stalled], 0
	for _, s := range of.Spans {
		if s.To = instant.Earlier(s.To, b.Through); !s.To.After(s.From) {
			continue
		}
		if !ticks.Last(s.To).Equal(s.To) { // the schedule was another one
			return nil
		}
		n += ticks.Count(s.From, s.To, maxCount+1)
		if s.From = instant.Later(s.From, b.Failed); s.To.After(s.From) {
			spans = append(spans, s)
		}
	}
	if known != b.Done() || known != int64(n) {
		return nil
	}
	return spans
}

// without returns spans without the parts that are in others.
func without(spans, others []record.Span) []record.Span {
	for _, o := range others {
		var left []record.Span
		for _, s := range spans {
			for _, part := range []record.Span{{From: s.From, To: instant.Earlier(s.To, o.From)}, {From: instant.Later(s.From, o.To), To: s.To}} {
				if part.To.After(part.From) {
					left = append(left, part)
				}
			}
		}
		spans = left
	}
	return spans
}

// spanOf returns where the ticks of an outcome are.
func spanOf(f *event.Outcome) record.Span {
	if f.From.IsZero() {
		return record.Span{From: f.Tick.Add(-1), To: f.Tick}
	}
	return record.Span{From: f.From, To: f.Tick}
}

// reach returns the instant after which the history has the outcome of each tick, and whether it has
// the outcomes of all ticks that the job has ever had.
func reach(r *record.Record) (since time.Time, all bool) {
	var counted, known int64
	for _, n := range r.Counts {
		counted += n
	}
	since = r.Watermark
	for i := range r.History {
		f := &r.History[i]
		if f.Request != "" {
			continue
		}
		if since = spanOf(f).From; f.From.IsZero() {
			known++
		} else {
			known += int64(f.Count)
		}
	}
	return since, known == counted
}
