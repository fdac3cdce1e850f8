package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// The invariants about claims of several ticks of a backfill.

// several reports whether a write is of a claim of several ticks.
func (e *Event) several() bool { return e.backfillOf() != 0 && e.Record.Backfill.Several }

// ticks returns what a write claims, or tells of a run that is under way: one tick and its attempt, or several of a backfill.
func (e *Event) ticks() (all []store.OpenTick) {
	run := &e.Record.Run
	if !e.several() {
		return []store.OpenTick{{Tick: run.Tick, Attempt: run.Attempt}}
	}
	for _, o := range e.Record.Backfill.Open {
		if o.Token == e.Record.Token {
			all = append(all, o)
		}
	}
	return all
}

// claims reports whether a claim is one of the attempt of a run.
func (e *Event) claims(r *Event) bool {
	return slices.ContainsFunc(e.ticks(), func(o store.OpenTick) bool {
		return (o.Tick.Equal(r.Tick) || IsSlot(e.Job)) && o.Attempt == r.Attempt
	})
}

// A filling is what is known of a backfill that runs several ticks at a time, from claims, runs and writes.
type filling struct {
	order   *Event
	last    time.Time                // of its ticks that were claimed; zero: none was
	claimed map[int64]store.OpenTick // by tick: its last claim
	ended   map[int64]*Event         // by tick: the write that gave it an outcome
}

// backfilledBeside: of a backfill that runs several ticks at a time no claim has more of them than were asked for, new
// ones are claimed in their order, none is left out, and each has one outcome: it is not claimed again, nor run, after that,
// and has it not before its run returns. No claim but its own is beside its runs: see belief.
func backfilledBeside(l *Log, bad report) {
	for _, job := range l.index.jobs {
		if len(l.of(job, Corrupted)) > 0 {
			continue // an operator may have put the cursor back
		}
		all := map[int64]*filling{}
		for seq, o := range l.backfillOrders(job) {
			if o.Parallel > 1 {
				all[seq] = &filling{order: o, claimed: map[int64]store.OpenTick{}, ended: map[int64]*Event{}}
			}
		}
		var last *store.Record
		for _, w := range l.writes(job) {
			if w.Record == nil || w.Replica == Operator || w.Op == "create" {
				last = w.Record
				continue
			}
			if f := all[w.Record.Backfill.Seq]; f != nil && last != nil {
				l.fills(f, last, w, bad)
			}
			last = w.Record
		}
		for _, r := range l.runs(job) {
			f := all[store.BackfillOf(r.Request)]
			if f == nil {
				continue
			}
			if end := f.ended[r.Tick.UnixNano()]; end != nil && r.Time.After(end.Time) && !l.thawed(&r, end.Time) {
				bad(r.Time, "%s begins, and had its outcome at %s", r.name(), TimeOfDay(end.Time))
			}
		}
	}
}

// fills takes in a write that follows the record before it.
func (l *Log) fills(f *filling, before *store.Record, w *Event, bad report) {
	var ended []store.OpenTick
	if before.Backfill.Seq == w.Record.Backfill.Seq {
		for _, o := range before.Backfill.Open {
			if !slices.ContainsFunc(w.Record.Backfill.Open, func(n store.OpenTick) bool { return n.Tick.Equal(o.Tick) }) {
				ended = append(ended, o)
			}
		}
	}
	begun := slices.DeleteFunc(slices.Clone(ended), func(o store.OpenTick) bool { return o.Attempt == 0 }) // the others are dropped
	told := w.Record.Backfill.Done()
	if before.Backfill.Seq == w.Record.Backfill.Seq {
		told -= before.Backfill.Done()
	}
	if n := int64(len(begun)); told < n || told > int64(len(ended)) {
		bad(w.Time, "%s writes %d outcomes of %s of %s, and %d of its ticks are not open any more", w.Replica, told, f.order.Request, w.Job, n)
	}
	stalled := w.Record.Backfill.Counts[store.Stalled] > before.Backfill.Counts[store.Stalled] || w.Record.Run.Status == store.Stalled
	for _, o := range ended {
		f.ended[o.Tick.UnixNano()] = w
		if claim := l.claimOf(w.Job, o.Token); claim != nil && claim.Lease == w.Lease && !stalled && w.Record.Token == o.Token {
			l.wantReturned(w, o, bad)
		}
	}
	if c := l.claimOf(w.Job, w.Record.Token); c == w && w.several() {
		l.wantClaimed(f, w, bad)
	}
}

// wantReturned checks that the run of a tick has returned before its own replica writes its outcome.
func (l *Log) wantReturned(w *Event, o store.OpenTick, bad report) {
	for _, r := range l.runs(w.Job) {
		if r.Token == o.Token && r.Tick.Equal(o.Tick) && r.Replica == w.Replica && (r.End.IsZero() || r.End.After(w.Time)) && r.Time.Before(w.Time) {
			bad(w.Time, "%s writes the outcome of %s, which goes on", w.Replica, r.name())
		}
	}
}

// wantClaimed checks the ticks of a claim.
func (l *Log) wantClaimed(f *filling, e *Event, bad report) {
	all := e.ticks()
	if len(all) == 0 || len(all) > f.order.Parallel {
		bad(e.Time, "%s claims %d ticks of %s of %s, of %d at a time", e.Replica, len(all), f.order.Request, e.Job, f.order.Parallel)
	}
	for _, o := range all {
		before, known := f.claimed[o.Tick.UnixNano()]
		switch end := f.ended[o.Tick.UnixNano()]; {
		case end != nil:
			bad(e.Time, "%s claims %s of %s of %s again, which had its outcome at %s", e.Replica, TimeOfDay(o.Tick), f.order.Request, e.Job, TimeOfDay(end.Time))
		case known && o.Attempt == before.Attempt && !l.hasRun(e.Job, before):
		case known && o.Attempt != before.Attempt+1, !known && o.Attempt != 1:
			bad(e.Time, "%s claims %s of %s of %s, attempt %d, after attempt %d", e.Replica, TimeOfDay(o.Tick), f.order.Request, e.Job, o.Attempt, before.Attempt)
		case !known:
			if want, ok := l.nextOf(f.order, f.last); ok && !o.Tick.Equal(want) {
				bad(e.Time, "%s claims %s of %s of %s, and %s is the next of its ticks", e.Replica, TimeOfDay(o.Tick), f.order.Request, e.Job, TimeOfDay(want))
			}
			f.last = o.Tick
		}
		f.claimed[o.Tick.UnixNano()] = o
	}
}

// hasRun reports whether the run of a claim has begun.
func (l *Log) hasRun(job string, o store.OpenTick) bool {
	return slices.ContainsFunc(l.runs(job), func(r Event) bool { return r.Token == o.Token && r.Tick.Equal(o.Tick) })
}

// nextOf returns the tick of a backfill after another one, zero for the first. It returns false if the schedule has changed.
func (l *Log) nextOf(o *Event, after time.Time) (next time.Time, ok bool) {
	ticks := l.ticksOf(o)
	for _, tick := range ticks {
		if tick.After(after) {
			return tick, true
		}
	}
	return time.Time{}, len(ticks) > 0
}

// emittedBeside is emitted for a claim of several ticks: that a run has ended is told once, by the replica that has written it.
func emittedBeside(l *Log, claim *Event, bad report) {
	var events []*Event
	for _, e := range l.of(claim.Job, Emitted) {
		if e.Op != string(event.Ended) || e.Token != claim.Record.Token {
			continue
		}
		if events = append(events, e); e.Replica != claim.Replica || !slices.ContainsFunc(claim.ticks(), func(o store.OpenTick) bool { return o.Tick.Equal(e.Tick) }) {
			bad(e.Time, "%s tells the end of %s of %s, token %d, which it has not claimed", e.Replica, TimeOfDay(e.Tick), claim.Job, e.Token)
		}
	}
	for _, o := range claim.ticks() {
		told := slices.DeleteFunc(slices.Clone(events), func(e *Event) bool { return !e.Tick.Equal(o.Tick) })
		var end *Event
		for w := range l.leased(claim) {
			if end == nil && w.OK() && w.Record != nil && w.Record.Token == o.Token && w.Writes() && w.Op != "take back" && w.Time.After(claim.Time) &&
				!slices.ContainsFunc(w.ticks(), func(n store.OpenTick) bool { return n.Tick.Equal(o.Tick) }) {
				end = w
			}
		}
		switch {
		case len(told) > 1:
			bad(told[1].Time, "the end of %s of %s, token %d, is told twice", TimeOfDay(o.Tick), claim.Job, o.Token)
		case len(told) == 1 && end == nil && !l.putBack(told[0]):
			bad(told[0].Time, "an event says what is not written: the end of %s of %s, token %d", TimeOfDay(o.Tick), claim.Job, o.Token)
		case len(told) == 0 && end != nil && l.hasRun(claim.Job, o) && !l.inDoubt(written{write: end}) && !l.putBack(end) && !l.leftToNext(claim, o.Tick, end):
			bad(end.Time, "the event is missing: the end of %s of %s, token %d", TimeOfDay(o.Tick), claim.Job, o.Token)
		}
	}
}

// leftToNext reports whether nobody may have told the end of one of the runs of a claim: the write for it had failed, so another write
// has its outcome. A replica tells it with the next end then, and this one has died before.
func (l *Log) leftToNext(claim *Event, tick time.Time, wrote *Event) bool {
	var returned time.Time
	for _, r := range l.termOf(claim.Job, claim.Record.Token).tries {
		if r.Tick.Equal(tick) {
			returned = r.End
		}
	}
	var failed, finished bool
	for e := range l.leased(claim) {
		failed = failed || e.Op == "progress" && !e.OK() && e.Sent.After(returned) && e.Sent.Before(wrote.Sent)
		finished = finished || e.Op == "finish" && e.OK()
	}
	return failed && !finished && !l.crashed(claim.Replica).IsZero()
}

// cancelledWhole reports whether the backfill of a claim was cancelled before its runs were over: those that had not begun
// have an outcome all the same. An order without an answer may have been for any backfill.
func (l *Log) cancelledWhole(job string, t *term) bool {
	request := t.claim.Record.Run.Request
	return store.BackfillOf(request) != 0 && slices.ContainsFunc(l.of(job, Ordered), func(o *Event) bool {
		return o.Op == string(store.OrderCancelBackfill) && (o.Request == request || o.Request == "") && o.Time.Before(t.gone())
	})
}

// thawed reports whether a run was about to begin before t, and its replica was suspended until then: see H5.
func (l *Log) thawed(r *Event, t time.Time) bool {
	f := l.frozen(r.Replica, t, r.Time)
	return f != nil && f.Time.Before(t) && !r.Time.After(f.End.Add(noticed)) && !r.Cancelled.IsZero() && !r.Cancelled.After(f.End.Add(noticed))
}
