package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A backfill runs ticks again that have their outcome. An operator orders it; see pause.go for how
// orders reach the replicas.
//
//   - Each of its ticks is claimed as any run is, in the record of the job, so no two runs of the
//     job take place at a time, and the one with the larger token is the later one.
//   - The claim moves the cursor of the backfill, and the write that settles the run counts its
//     outcome. So each tick has one outcome, whatever becomes of the replicas in between. Under
//     Rerun a tick whose runner died is claimed again.
//   - A tick of the job that is due comes first, also before a further attempt of a tick of the
//     backfill. A manual run that was ordered does too.
//   - It never moves the watermark. Ticks that come due under its run are not skipped: they are due.
//   - While the job is paused it waits.

// inForce reports whether the backfill of that number is to be carried out for the record. One
// that was ordered for an entry which was deleted is not.
func inForce(r *store.Record, v View, seq int64) bool {
	b := &v.Control.Backfill
	return b.On() && b.Seq == seq && seq > r.Created.UnixMicro() && r.Backfill.Seq <= seq
}

// Backfills reports whether a tick of a backfill waits for a claim.
func (p *Policy) Backfills(v View) bool {
	tick, _ := p.nextBackfilled(v.Record, v)
	return !tick.IsZero() && v.Claims == AnyRun && !p.Paused && !p.PausedAt(v)
}

// BackfillOver reports whether no tick of a backfill is left to claim.
func (p *Policy) BackfillOver(r *store.Record, b *store.Backfill) bool {
	tick, _ := p.nextBackfilled(r, View{Record: r, Control: store.JobControl{Backfill: *b}})
	return tick.IsZero()
}

// nextBackfilled returns the next tick of the backfill, and the attempt that it is to be. Zero:
// none is left, or none can be claimed.
func (p *Policy) nextBackfilled(r *store.Record, v View) (tick time.Time, attempt int) {
	b := &v.Control.Backfill
	if b.Seq == 0 || p.Ticks == nil || !inForce(r, v, b.Seq) {
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
	if tick = p.backfilledAfter(r, b, through); tick.IsZero() {
		return tick, 0
	}
	return tick, 1
}

// backfilledAfter returns the first tick of a backfill after an instant, zero if there is none, or if as many were claimed
// as a backfill may have: another schedule may have more of them than the schedule under which it was ordered.
func (p *Policy) backfilledAfter(r *store.Record, b *store.Backfill, through time.Time) time.Time {
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
func settleBackfilled(r *store.Record, f store.Outcome) {
	b := &r.Backfill
	if b.Seq != store.BackfillOf(f.Request) {
		return
	}
	b.Counts = maps.Clone(b.Counts) // the record that this one was cloned from shares them
	if b.Counts == nil {
		b.Counts = map[store.Status]int64{}
	}
	b.Counts[f.Status]++
	if IsFailure(&f) {
		b.Failed = instant.Later(b.Failed, f.Tick)
	}
}

// waitAgain has the tick of the last run wait for another attempt.
func waitAgain(r *store.Record) {
	if r.Backfill.Seq == r.Run.Order {
		r.Backfill.Through, r.Backfill.Attempt, r.Backfill.Deaths = r.Run.Tick, r.Run.Attempt, r.Run.Deaths
	}
}

// takeBackBackfilled has the backfill go on with the tick of a claim that was given up.
func takeBackBackfilled(r *store.Record, claim *store.Run) {
	r.Orders.Returned = store.Returned{Tick: claim.Tick, Order: claim.Order}
	r.Backfill.Through, r.Backfill.Attempt, r.Backfill.Deaths = claim.Tick, claim.Attempt-1, claim.Deaths
	if claim.Attempt == 1 { // the cursor is before it
		r.Backfill.Through, r.Backfill.Deaths = claim.Tick.Add(-1), 0
	}
}

// MaxBackfill is how many ticks one backfill may have.
const MaxBackfill = maxCount

// A Range is what a backfill is asked for: both ends are in it.
type Range struct {
	From, To time.Time
	All      bool // all ticks of the range; otherwise those that were missed
	Parallel int  // how many are run at a time, up to MaxParallel; 0 and 1: one
}

// PlanBackfill returns the backfill of a range, without what its order adds, and its first and last
// tick. former is the backfill that was ordered before. The error says, for people, why there is none.
func (p *Policy) PlanBackfill(r *store.Record, now time.Time, of Range, former *store.Backfill) (b store.Backfill, first, last time.Time, err error) {
	if err := p.checkRange(r, now, of); err != nil {
		return b, first, last, err
	}
	b = store.Backfill{From: of.From.UTC(), To: of.To.UTC(), All: of.All}
	if of.Parallel > 1 {
		b.Parallel = of.Parallel
	}
	b.Spans = []store.Span{{From: b.From.Add(-1), To: b.To}}
	if !of.All {
		if b.Spans, err = missedIn(r, b.Spans[0]); err != nil {
			return b, first, last, err
		}
		b.Spans = without(b.Spans, p.madeUp(r, former))
	}
	kept := b.Spans[:0]
	for _, s := range b.Spans {
		n := p.Ticks.Count(s.From, s.To, MaxBackfill+1-b.Ticks)
		if n == 0 {
			continue
		}
		if b.Ticks += n; b.Ticks > MaxBackfill {
			return b, first, last, fmt.Errorf("the range has more than %d ticks: order it in parts, one after the other", MaxBackfill)
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

// checkRange returns what is wrong with a range.
func (p *Policy) checkRange(r *store.Record, now time.Time, of Range) error {
	switch first := p.Ticks.Next(r.Watermark); {
	case of.From.IsZero() || of.To.IsZero():
		return fmt.Errorf("from or to is missing: the range has both ends")
	case of.From.UTC().Year() < 1 || of.To.UTC().Year() > 9999:
		return fmt.Errorf("the range is beyond the years 1 to 9999")
	case of.To.Before(of.From):
		return fmt.Errorf("to is %s, before from, %s", of.To.UTC().Format(time.RFC3339), of.From.UTC().Format(time.RFC3339))
	case of.To.After(now):
		return fmt.Errorf("to is %s, which is in the future: ticks to come are run when they are due", of.To.UTC().Format(time.RFC3339))
	case of.Parallel < 0 || of.Parallel > MaxParallel:
		return fmt.Errorf("%d ticks at a time: want 1 to %d", of.Parallel, MaxParallel)
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
func missedIn(r *store.Record, within store.Span) (spans []store.Span, err error) {
	since, all := reach(r)
	if within.From.Before(since) && !all {
		return nil, fmt.Errorf("the record knows the outcomes of the ticks after %s, and of none before: ask for a range that begins after it, or for all ticks of the range", since.UTC().Format(time.RFC3339Nano))
	}
	for _, f := range slices.Backward(r.History) {
		if f.Request != "" || f.Status != store.Missed || !f.From.IsZero() && f.Count == 0 {
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
func (p *Policy) madeUp(r *store.Record, of *store.Backfill) (spans []store.Span) {
	b := &r.Backfill
	if of.Seq == 0 || b.Seq != of.Seq || b.Attempt > 0 || len(b.Open) > 0 || isBackfill(r) && r.Run.Status == store.Running {
		return nil
	}
	known, ticks := b.Counts[store.Succeeded]+b.Counts[store.Failed]+b.Counts[store.Stalled], 0
	for _, s := range of.Spans {
		if s.To = instant.Earlier(s.To, b.Through); !s.To.After(s.From) {
			continue
		}
		if !p.Ticks.Last(s.To).Equal(s.To) { // the schedule was another one
			return nil
		}
		ticks += p.Ticks.Count(s.From, s.To, MaxBackfill+1)
		if s.From = instant.Later(s.From, b.Failed); s.To.After(s.From) {
			spans = append(spans, s)
		}
	}
	if known != b.Done() || known != int64(ticks) {
		return nil
	}
	return spans
}

// without returns spans without the parts that are in others.
func without(spans, others []store.Span) []store.Span {
	for _, o := range others {
		var left []store.Span
		for _, s := range spans {
			for _, part := range []store.Span{{From: s.From, To: instant.Earlier(s.To, o.From)}, {From: instant.Later(s.From, o.To), To: s.To}} {
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
func spanOf(f *store.Outcome) store.Span {
	if f.From.IsZero() {
		return store.Span{From: f.Tick.Add(-1), To: f.Tick}
	}
	return store.Span{From: f.From, To: f.Tick}
}

// reach returns the instant after which the history has the outcome of each tick, and whether it has
// the outcomes of all ticks that the job has ever had.
func reach(r *store.Record) (since time.Time, all bool) {
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
