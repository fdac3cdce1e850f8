package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// callers: who calls is told the truth. Do calls its function at most once, returns after it, and returns nil only if that did.
// Once.Run returns nil only after a success, and gives up only after as many tries as it may make. RunNow returns an outcome that
// is written. The functions of a lock have IDs of their own.
func callers(w *world, bad report) {
	runs := w.calls(bad)
	for _, c := range w.of[trace.Called] {
		switch {
		case c.End.IsZero():
		case c.Op == "once":
			w.onceTold(c, bad)
		default:
			w.lockTold(c, runs[c.Call], bad)
		}
	}
	for _, a := range w.of[trace.Answered] {
		e, d, status := w.entries[a.Job], w.definition(a.Replica, a.Job), store.Status(a.Result)
		if e == nil || d == nil || d.EveryReplica || a.Result == trace.Refused || status == store.Running {
			continue
		}
		if !slices.ContainsFunc(e.writes, func(q *trace.Event) bool {
			return q.Record != nil && !q.Time.After(a.Time) && says(q.Record, a.Request, status)
		}) {
			bad(a.Time, "%s answers that %s of %s has %s, which is not written", a.Replica, a.Request, a.Job, status)
		}
	}
}

// says reports whether a record has a status of what was requested.
func says(r *store.Record, request string, status store.Status) bool {
	return r.Run.Request == request && r.Run.Status == status ||
		slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Request == request && f.Status == status })
}

// calls are the runs of each call of a lock, or of what is done once.
func (w *world) calls(bad report) map[string][]*run {
	ids, runs := map[[2]string]string{}, map[string][]*run{}
	for _, name := range w.names {
		for _, r := range w.entries[name].runs {
			if r.Call != "" {
				runs[r.Call] = append(runs[r.Call], r)
			}
			id := [2]string{r.Lock, r.ID}
			if r.Lock != "" && ids[id] != "" {
				bad(r.Time, "%s is given the ID %s of %s", r.Call, r.ID, ids[id])
			}
			ids[id] = r.Call
		}
	}
	return runs
}

func (w *world) lockTold(c *trace.Event, runs []*run, bad report) {
	if len(runs) > 1 {
		bad(c.End, "%s calls its function %d times", c.Call, len(runs))
		return
	}
	if len(runs) == 1 {
		switch r := runs[0]; {
		case r.End.IsZero() || r.End.After(c.End):
			bad(c.End, "%s returns before its function does", c.Call)
		case c.Result == trace.Held || c.Result == trace.Well && (r.Result != trace.Well || r.Why == trace.Lost):
			bad(c.End, "%s returns as %s, and its function as %s", c.Call, c.Result, r.Result)
		}
		return
	}
	switch {
	case c.Result == trace.Well:
		bad(c.End, "%s returns nil, and has not called its function", c.Call)
	case c.Result == trace.Held && c.Op == "do" && c.Cancelled.IsZero():
		bad(c.End, "%s says that %s is held before its context has ended", c.Call, c.Lock)
	}
}

func (w *world) onceTold(c *trace.Event, bad report) {
	e, most := w.entries[c.Job], w.Onces[c.Job].MaxTries
	switch {
	case e == nil:
	case c.Result == trace.Well && !slices.ContainsFunc(e.runs, func(r *run) bool { return r.returned() && !r.End.After(c.End) }):
		bad(c.End, "%s returns nil, and no replica has done %s", c.Call, c.Job)
	case c.Result != trace.Well && c.Cancelled.IsZero() && (most == 0 || len(e.claims) < most):
		bad(c.End, "%s gives %s up after %d claims of %d", c.Call, c.Job, len(e.claims), most)
	}
}

// statuses: a status says of a job what its record said at some moment between the question and the answer.
func statuses(w *world, bad report) {
	for _, s := range w.of[trace.Listed] {
		e := w.entries[s.Job]
		if e == nil || e.epoch(s.Heard) > 0 || w.containerLost(time.Time{}, s.Heard) {
			continue
		}
		first, last := after(e.writes, s.Sent, timeOf), after(e.writes, s.Heard, timeOf)
		all := e.writes[max(0, first-1):last]
		if s.Record == nil && first > 0 || s.Record != nil && !slices.ContainsFunc(all, func(q *trace.Event) bool { return q.Record != nil && q.Record.Writer == s.Record.Writer }) {
			bad(s.Heard, "a status says of %s what its record did not say from %s on", s.Job, clock(s.Sent))
		}
	}
}

// events: what a replica emits of an outcome it has written before, and it emits it once.
func events(w *world, bad report) {
	type telling struct {
		replica, job, status string
		tick, token          int64
	}
	written, emitted := map[telling]time.Time{}, map[telling]bool{}
	for _, e := range w.jobs {
		for _, q := range e.writes {
			if r := q.Record; r != nil { // what another replica repeats has no outcome
				key := telling{q.Replica, e.name, string(r.Run.Status), r.Run.Tick.UnixNano(), r.Token}
				written[key] = first(written[key], q.Time)
			}
		}
		for _, o := range e.outcomes {
			key := telling{o.write.Replica, e.name, string(o.Status), o.Tick.UnixNano(), o.Token}
			written[key] = first(written[key], o.write.Time)
		}
	}
	for _, e := range w.of[trace.Emitted] {
		on, kind, d := w.entries[e.Job], event.Kind(e.Op), w.definition(e.Replica, e.Job)
		if kind != event.Ended && kind != event.Settled || on == nil || d == nil || d.EveryReplica || len(on.of[trace.Corrupted]) > 0 || e.Request != "" {
			continue
		}
		key := telling{e.Replica, e.Job, e.Note, e.Tick.UnixNano(), e.Token}
		if at := written[key]; at.IsZero() || at.After(e.Time) {
			bad(e.Time, "%s emits that tick %s of %s has %s, which it has not written", e.Replica, clock(e.Tick), e.Job, e.Note)
		}
		if key.status = e.Op; emitted[key] {
			bad(e.Time, "%s emits twice what became of tick %s of %s", e.Replica, clock(e.Tick), e.Job)
		}
		emitted[key] = true
	}
}
