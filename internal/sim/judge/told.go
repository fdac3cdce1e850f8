package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// callers: what a call returns is true. Do calls its function at most once, returns after it, and returns nil only if that
// did. Once.Run returns nil only after a success, and gives up only after as many tries as it may make. RunNow returns an
// outcome that is written. The functions of a lock have IDs of their own.
func callers(w *world, bad report) {
	ids, runs := map[[2]string]string{}, by[string, *run]{}
	for _, r := range w.runs {
		if r.Call != "" {
			runs.add(r.Call, r)
		}
		id := [2]string{r.Lock, r.ID}
		if r.Lock != "" && ids[id] != "" {
			bad(r.Time, "%s is given the ID %s of %s", r.Call, r.ID, ids[id])
		}
		ids[id] = r.Call
	}
	for _, c := range w.of[trace.Called] {
		if why := w.wrongAnswer(c, runs[c.Call]); !c.End.IsZero() && why != "" {
			bad(c.End, "%s of %s%s returns as %q, and %s", c.Call, c.Lock, c.Job, c.Result, why)
		}
	}
	for _, a := range w.of[trace.Answered] {
		e, d, status := w.entries[a.Job], w.definition(a.Replica, a.Job), event.Status(a.Result)
		if e == nil || d == nil || d.EveryReplica || a.Result == trace.Refused || status == event.Running {
			continue
		}
		is := func(f event.Outcome) bool { return f.Request == a.Request && f.Status == status }
		if !slices.ContainsFunc(e.writes, func(q *write) bool {
			return q.Record != nil && !q.Time.After(a.Time) && (slices.ContainsFunc(q.Record.History, is) ||
				is(event.Outcome{Request: q.Record.Run.Request, Status: q.Record.Run.Status}))
		}) {
			bad(a.Time, "%s answers that %s of %s has %s, which is not written", a.Replica, a.Request, a.Job, status)
		}
	}
}

// wrongAnswer is what is wrong with the answer to a call of a lock, whose runs are these, or of once.
func (w *world) wrongAnswer(c *trace.Event, runs []*run) string {
	e, most := w.entries[c.Job], w.Onces[c.Job].MaxTries
	switch {
	case c.Op == "once" && e == nil:
	case c.Op == "once" && c.Result == trace.Well:
		if !slices.ContainsFunc(e.runs, func(r *run) bool { return r.returned() && !r.End.After(c.End) }) {
			return "no replica has done it"
		}
	case c.Op == "once":
		if c.Cancelled.IsZero() && (most == 0 || len(e.claims) < most) {
			return "may make more tries"
		}
	case len(runs) > 1:
		return "its function was called again"
	case len(runs) == 0 && c.Result == trace.Well:
		return "its function was not called"
	case len(runs) == 0 && c.Result == trace.Held && c.Op == "do" && c.Cancelled.IsZero():
		return "its context has not ended"
	case len(runs) == 0:
	case runs[0].goesOn(c.End):
		return "its function has not returned"
	case c.Result == trace.Held || c.Result == trace.Well && (runs[0].Result != trace.Well || runs[0].Why == trace.Lost):
		return "its function as " + string(runs[0].Result)
	}
	return ""
}

// statuses: a status says of a job what its record said at some moment between the question and the answer.
func statuses(w *world, bad report) {
	for _, s := range w.of[trace.Listed] {
		e := w.entries[s.Job]
		if e == nil || e.epoch(s.Heard) > 0 || w.containerLost(time.Time{}, s.Heard) {
			continue
		}
		timeOf := func(q *write) time.Time { return q.Time }
		first, last := after(e.writes, s.Sent, timeOf), after(e.writes, s.Heard, timeOf)
		is := func(q *write) bool { return q.Record != nil && q.Record.Writer == s.Record.Writer }
		if s.Record == nil && first > 0 || s.Record != nil && !slices.ContainsFunc(e.writes[max(0, first-1):last], is) {
			bad(s.Heard, "a status says of %s what its record did not say from %s on", s.Job, clock(s.Sent))
		}
	}
}

// events: what a replica emits of an outcome it has written before, and it emits it once.
func events(w *world, bad report) {
	emitted := map[string]bool{}
	for _, e := range w.of[trace.Emitted] {
		on, kind, d := w.entries[e.Job], event.Kind(e.Op), w.definition(e.Replica, e.Job)
		spoilt := on == nil || d == nil || len(on.of[trace.Corrupted]) > 0
		if kind != event.Ended && kind != event.Settled || spoilt || d.EveryReplica || e.Request != "" {
			continue
		}
		is := func(o outcome) bool { return string(o.Status) == e.Note && o.Tick.Equal(e.Tick) && o.Token == e.Token }
		wrote := slices.ContainsFunc(on.writes, func(q *write) bool {
			if q.Replica != e.Replica || q.Time.After(e.Time) || q.Record == nil {
				return false
			}
			run := &q.Record.Run // what another replica repeats has no outcome
			return slices.ContainsFunc(q.outcomes, is) ||
				is(outcome{Outcome: event.Outcome{Status: run.Status, Tick: run.Tick, Token: q.Record.Token}})
		})
		key := fmt.Sprint(e.Replica, e.Job, e.Op, e.Tick, e.Token)
		if !wrote || emitted[key] {
			bad(e.Time, "%s emits that tick %s of %s has %s, which it has not written, or again", e.Replica, clock(e.Tick), e.Job, e.Note)
		}
		emitted[key] = true
	}
}
