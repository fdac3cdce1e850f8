package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

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
