package plan

import (
	"maps"
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
