package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Phase 3: a settled cluster meets one thing at a time. Nothing else happens, so bounds need no excuses.

const (
	roundTrip = 1800 * time.Millisecond
	recovers  = 90 * time.Second // the longest lease, a third of it, and calls
	restful   = 4 * time.Minute
)

func (w *world) single() {
	for _, s := range w.of["single"] {
		e, d := w.entries[s.Job], w.latest(s.Job)
		if e == nil || d == nil {
			continue
		}
		for _, name := range w.names { // a while later all is as before
			if its := w.latest(name); its != nil && its.Every > 0 && !its.EveryReplica && !its.Paused && its.Follows == "" && its.Group == "" && !w.pausedItself(name) && name != trace.Foreign {
				w.inTime(w.entries[name], its, s.Time.Add(recovers), s.Time.Add(restful))
			}
		}
		i := slices.IndexFunc(e.runs, func(r *run) bool {
			return r.Replica == s.Replica && r.claim != nil && !r.Time.After(s.Time) && (r.End.IsZero() || !r.End.Before(s.Time))
		})
		if s.Note == "restart" {
			w.leaves(s)
		}
		if i < 0 || d.Group != "" || d.Spread() {
			continue
		}
		r := e.runs[i]
		length := time.Duration(r.claim.Record.Run.Lease)
		by := s.Time.Add(length + length/3 + 300*time.Millisecond + 3*roundTrip)
		again := d.Every == 0 || d.Interrupted == soloist.Rerun && r.Request == "" && r.Attempt < 5 && (d.StartingDeadline == 0 || by.Before(r.Tick.Add(d.StartingDeadline)))
		if s.Note == "restart" || !again || s.Note == "freeze" && r.Cause == "" { // it may have returned, or gone on
			continue
		}
		if !slices.ContainsFunc(e.runs, func(o *run) bool { return o.Token > r.Token && o.Time.Before(by) }) {
			w.bad("P3 failover", by, "%s of %s meets a %s at %s, and nobody goes on with %s", s.Replica, e.name, s.Note, trace.TimeOfDay(s.Time), e.name)
		}
	}
}

// leaves: a replica that is stopped and gone has left no lease that is live.
func (w *world) leaves(s *trace.Event) {
	gone := w.gone(s.Replica)
	if gone.IsZero() {
		return
	}
	for _, name := range w.names {
		e := w.entries[name]
		for _, t := range e.terms {
			mine := slices.ContainsFunc(e.requests, func(q *trace.Event) bool { return q.Op == "acquire" && q.Lease == t.id && q.Replica == s.Replica })
			if mine && t.to.After(gone.Add(slack)) && t.from.Before(gone) {
				w.bad("P3 let go", gone, "%s is gone, and has left the lease of %s", s.Replica, name)
			}
		}
	}
}
