package judge

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// claims: each call of a function belongs to a claim that its replica wrote before, that was not taken back, and that is of its
// tick and attempt. A claim begins each of its tries once.
func claims(w *world, bad report) {
	type try struct {
		claim *claim
		n     int
		tick  int64 // a claim of a backfill may have several
	}
	tried := map[try]bool{}
	for e, r := range w.runs() {
		key := try{r.claim, r.Try, r.Tick.UnixNano()}
		switch c := r.claim; {
		case c == nil:
			bad(r.Time, "%s begins %s with token %d, which it has not claimed", r.Replica, e.name, r.Token)
		case !c.back.IsZero() && c.back.Before(r.Time):
			bad(r.Time, "%s begins %s with token %d, whose claim it has taken back", r.Replica, e.name, r.Token)
		case tried[key]:
			bad(r.Time, "%s begins try %d of %s with token %d again", r.Replica, r.Try, e.name, r.Token)
		case !trace.IsSlot(e.name) && !c.Record.Backfill.Several && (c.Record.Run.Attempt != r.Attempt || r.Request == "" && !c.Record.Run.Tick.Equal(r.Tick)):
			bad(r.Time, "%s begins %s with token %d for another tick or attempt than it has claimed", r.Replica, e.name, r.Token)
		}
		tried[key] = true
	}
}

// tokens: the token grows with each claim in the order of the service, also after an entry was deleted and made again, but not
// after an older version was put back. A token is of one run: no write makes it another's.
func tokens(w *world, bad report) {
	for _, name := range w.names {
		e := w.entries[name]
		for i, c := range e.claims {
			if i == 0 {
				continue
			}
			before := e.claims[i-1]
			if c.Record.Token <= before.Record.Token && (before.epoch == c.epoch || !e.restored(before.Time, c.Time)) {
				bad(c.Time, "%s claims %s with token %d after %d", c.Replica, name, c.Record.Token, before.Record.Token)
			}
		}
		if trace.IsSlot(name) {
			continue
		}
		for _, q := range e.writes {
			r, last := q.Record, e.before[q]
			if r == nil || last == nil || q.Replica == trace.Operator || q.Op == "create" || q.Op == "take back" || last.Backfill.Several || r.Token != last.Token {
				continue
			}
			if !r.Run.Tick.Equal(last.Run.Tick) || r.Run.Attempt != last.Run.Attempt || r.Run.Status == store.Running && last.Run.Status != store.Running {
				bad(q.Time, "%s writes another run of %s with token %d", q.Replica, name, r.Token)
			}
		}
	}
}

// attempts: a tick is claimed once for each attempt, without gaps, in the order of ticks; a further attempt needs Rerun, and
// another lease than the one before.
func attempts(w *world, bad report) {
	for _, e := range w.jobs {
		var before *claim // of a tick
		for _, c := range e.claims {
			run, last, d := &c.Record.Run, e.before[c.Event], w.definition(c.Replica, e.name)
			if !c.back.IsZero() || d == nil || d.Every == 0 || run.Request != "" || run.Tick.IsZero() {
				continue
			}
			if before != nil && before.epoch != c.epoch {
				before = nil
			}
			if why := wrongAttempt(run, c, before, last, d); why != "" {
				bad(c.Time, "%s claims tick %s of %s, attempt %d, %s", c.Replica, clock(run.Tick), e.name, run.Attempt, why)
			}
			before = c
		}
	}
}

// wrongAttempt is what is wrong with an attempt, empty if it follows the claim of a tick before, and what the record said.
func wrongAttempt(run *store.Run, c, before *claim, last *store.Record, d *trace.Definition) string {
	switch {
	case last == nil:
	case run.Attempt > 1 && (!last.Run.Tick.Equal(run.Tick) || last.Run.Attempt != run.Attempt-1):
		return "which is not the next one"
	case run.Attempt > 1 && d.Interrupted != soloist.Rerun:
		return "which has no Rerun"
	case before == nil:
	case run.Attempt > 1 && before.Lease == c.Lease:
		return "under the lease of the one before"
	case run.Tick.Before(before.Record.Run.Tick):
		return "after a later tick"
	case run.Attempt == 1 && run.Tick.Equal(before.Record.Run.Tick):
		return "again"
	}
	return ""
}

// early: no tick begins while an answer of the service, under the lease of its claim, proves that it is not due yet.
func early(w *world, bad report) {
	for e, r := range w.runs() {
		if r.Try != 1 || !r.Time.Before(r.Tick) || !w.isTick(e, r) {
			continue
		}
		for _, q := range e.find.requests[r.claim.Lease] {
			if w.proves(q, r) {
				bad(r.Time, "%s begins tick %s of %s %s before it is due, as the answer to its %s proves", r.Replica, clock(r.Tick), e.name, r.Tick.Sub(r.Time), q.Op)
				break
			}
		}
	}
}

// proves reports whether an answer shows that the tick of a run was not due when that began: its date is of whole seconds, and
// the replica's clocks may be fast by a fiftieth since.
func (w *world) proves(q *trace.Event, r *run) bool {
	if q.Replica != r.Replica || !q.OK() || q.Cause != "" || q.Heard.IsZero() || !q.Heard.Before(r.Time) || w.sleeps(r.Replica, q.Sent.Add(-slack), r.Time) {
		return false
	}
	latest := q.Time.Truncate(time.Second).Add(time.Second + r.Time.Sub(q.Sent)*51/50 + slack)
	return latest.Before(r.Tick)
}
