package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about ticks that are run again.

// backfillOf returns the number of the backfill that a write is of, zero if it is of none.
func (e *Event) backfillOf() int64 {
	if e.Record == nil {
		return 0
	}
	return store.BackfillOf(e.Record.Run.Request)
}

// backfills reports whether a run is one of a backfill.
func (e *Event) backfills() bool { return store.BackfillOf(e.Request) != 0 }

// backfillOrders returns the orders of backfills by their number, as far as it is known.
func (l *Log) backfillOrders(job string) map[int64]*Event {
	all := map[int64]*Event{}
	for _, o := range l.of(job, Ordered) {
		if seq := store.BackfillOf(o.Request); o.Op == string(store.OrderBackfill) && seq != 0 {
			all[seq] = o
		}
	}
	return all
}

// backfilledInOrder: the ticks of a backfill are claimed in their order, none is left out, and none is claimed again that has
// its outcome: only after the death or the stop of its runner, under Rerun, as the next attempt.
func backfilledInOrder(l *Log, bad report) {
	for _, job := range l.index.jobs {
		if len(l.of(job, Corrupted)) > 0 {
			continue // an operator may have put the cursor back
		}
		last, orders := map[int64]*Event{}, l.backfillOrders(job)
		for _, e := range l.claimed(job) {
			seq, run := e.backfillOf(), &e.Record.Run
			if seq == 0 || e.several() {
				continue
			}
			before := last[seq]
			last[seq] = e
			switch {
			case before != nil && run.Attempt > 1 && before.Record.Run.Tick.Equal(run.Tick) && before.Record.Run.Attempt == run.Attempt-1:
				if end := l.ending(before); end != nil {
					bad(e.Time, "%s claims %s of backfill %d of %s again, which had its outcome: %s", e.Replica, TimeOfDay(run.Tick), seq, job, end.Record.Run.Status)
				}
			case run.Attempt != 1 || before != nil && !run.Tick.After(before.Record.Run.Tick):
				bad(e.Time, "%s claims %s of backfill %d of %s, attempt %d, after another", e.Replica, TimeOfDay(run.Tick), seq, job, run.Attempt)
			default:
				l.wantNext(orders[seq], before, e, bad)
			}
		}
	}
}

// ending returns the write that gave the run of a claim an outcome which is final, nil if there is none.
func (l *Log) ending(claim *Event) *Event {
	for _, e := range l.writes(claim.Job) {
		if e.Lease != claim.Lease || e.Record == nil || e.Record.Token != claim.Record.Token {
			continue
		}
		switch e.Record.Run.Status {
		case store.Succeeded, store.Failed, store.Skipped, store.Cancelled:
			return e
		}
	}
	return nil
}

// definitions returns what all replicas were told of a job.
func (l *Log) definitions(job string) (all []*Definition) {
	for replica := range l.Fleet {
		if d := l.definition(replica, job); d != nil {
			all = append(all, d)
		}
	}
	return all
}

// constant returns a definition whose ticks the job always has, nil if they have changed.
func (l *Log) constant(job string) (same *Definition) {
	for _, d := range l.definitions(job) {
		if same != nil && (d.Every != same.Every || d.Limits != same.Limits) {
			return nil
		}
		same = d
	}
	return same
}

// ticksOf returns the ticks of a backfill, nil if the schedule has changed.
func (l *Log) ticksOf(o *Event) (all []time.Time) {
	d := l.constant(o.Job)
	if d == nil || d.Every == 0 {
		return nil
	}
	for _, s := range o.Spans {
		for tick := d.After(s.From); !tick.After(s.To); tick = d.After(tick) {
			all = append(all, tick)
		}
	}
	return all
}

// wantNext checks that a claim is that of the tick that follows the one before, nil for the first.
func (l *Log) wantNext(o, before, e *Event, bad report) {
	if o == nil {
		return
	}
	ticks := l.ticksOf(o)
	if ticks == nil {
		return
	}
	next := 0
	if before != nil {
		next = 1 + slices.IndexFunc(ticks, before.Record.Run.Tick.Equal)
	}
	if next >= len(ticks) || !ticks[next].Equal(e.Record.Run.Tick) {
		bad(e.Time, "%s claims %s of %s of %s, and that is not the next of its ticks", e.Replica, TimeOfDay(e.Record.Run.Tick), o.Request, e.Job)
	}
}

// backfilledAside: a run of a backfill moves no watermark, and is not claimed while a tick is due, nor
// after its backfill was cancelled.
func backfilledAside(l *Log, bad report) {
	for _, job := range l.index.jobs {
		orders := l.of(job, Ordered)
		for _, e := range l.claimed(job) {
			t, d := l.termOf(job, e.Record.Token), l.definition(e.Replica, job)
			if e.backfillOf() == 0 || t == nil || d == nil {
				continue
			}
			for w := range l.leased(e) {
				if w.OK() && w.Record != nil && w.Record.Token == e.Record.Token && w.Writes() && w.Op != "claim" && w.Op != "settle" && !w.Record.Watermark.Equal(e.Record.Watermark) {
					bad(w.Time, "%s moves the watermark of %s to %s with a run of a backfill", w.Replica, job, TimeOfDay(w.Record.Watermark))
				}
			}
			// A pause settles nothing until it is over, and a follower waits for others.
			due := d.Last(l.decided(t).Add(-t.doubt()))
			if d.Follows == "" && !d.Paused && due.After(e.Record.Watermark) && len(l.of(job, Corrupted)) == 0 {
				bad(e.Time, "%s claims %s of %s for a backfill, and the tick %s is due", e.Replica, TimeOfDay(e.Record.Run.Tick), job, TimeOfDay(due))
			}
			for _, o := range orders {
				if o.Op == string(store.OrderCancelBackfill) && o.Request == e.Record.Run.Request && !o.Heard.IsZero() && l.decided(t).After(o.Heard.Add(binds)) && l.frozen(e.Replica, o.Heard, e.Time) == nil {
					bad(e.Time, "%s claims %s of %s, which was cancelled at %s", e.Replica, TimeOfDay(e.Record.Run.Tick), o.Request, TimeOfDay(o.Heard))
				}
			}
		}
	}
}

// backfilledWhole: once all faults are over each tick of a backfill has its run and its outcome, unless the
// backfill was cancelled or lost, or the job has yet to catch up with its ticks.
func backfilledWhole(l *Log, bad report) {
	if l.healed().IsZero() {
		return
	}
	for _, job := range l.index.jobs {
		orders := l.of(job, Ordered)
		for seq, o := range l.backfillOrders(job) {
			cancelled := slices.ContainsFunc(orders, func(c *Event) bool { // an order without an answer may have been for any
				return c.Op == string(store.OrderCancelBackfill) && (c.Request == o.Request || c.Request == "") && c.Time.After(o.Time)
			})
			d := l.latest(job)
			lost := l.ordersLost(o.Time).Before(l.end()) || l.forgot(job, o.Time, l.end()) || len(l.of(job, Corrupted)) > 0
			if cancelled || lost || d == nil || d.Paused || l.mayBePaused(job, l.settled()) || o.Heard.IsZero() {
				continue
			}
			ticks, claimed := l.ticksOf(o), map[int64]bool{}
			var done store.Backfilled
			var last time.Time // its watermark
			for _, e := range l.claimed(job) {
				if e.backfillOf() != seq {
					continue
				}
				for _, o := range e.ticks() {
					claimed[o.Tick.UnixNano()] = true
				}
			}
			for _, w := range l.writes(job) {
				if w.Record != nil && w.Record.Backfill.Seq == seq {
					done = w.Record.Backfill
				}
				if w.Record != nil {
					last = w.Record.Watermark
				}
			}
			if d.count(last, l.end()) > 1 { // it is always behind with its ticks, which come first
				continue
			}
			if ticks != nil && (len(claimed) != len(ticks) || done.Done() != int64(len(ticks)) || done.Attempt != 0 || len(done.Open) > 0) {
				bad(l.end(), "%s of %s has %d ticks, %d were claimed, and %d have an outcome", o.Request, job, len(ticks), len(claimed), done.Done())
			}
		}
	}
}

// backfilledAround reports whether a run of a backfill of the job was under way between two times.
func (l *Log) backfilledAround(job string, from, to time.Time) bool {
	return slices.ContainsFunc(l.runs(job), func(r Event) bool {
		return store.BackfillOf(r.Request) != 0 && r.Time.Before(to) && (r.End.IsZero() || r.End.After(from))
	})
}
