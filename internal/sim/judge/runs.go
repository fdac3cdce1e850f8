package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// checkpoints: a run loads what was saved last; nothing, if the entry was made anew.
func checkpoints(w *world, bad report) {
	for _, e := range w.jobs {
		kept, next := "0", 0
		for _, l := range e.of[trace.Loaded] {
			for ; next < len(e.writes) && !e.writes[next].Time.After(l.Time); next++ {
				switch e.writes[next].Op {
				case "create":
					kept = "0"
				case "save":
					kept = e.writes[next].Note
				}
			}
			c := w.crashed[l.Replica]
			if l.Note != kept && len(e.of[trace.Corrupted]) == 0 && (c.IsZero() || l.Time.Before(c)) {
				bad(l.Time, "%s loads %s of %s, and %s was saved", l.Replica, l.Note, e.name, kept)
			}
		}
	}
}

// fences: a resource that compares tokens takes what a run sends while its context lives, and nothing of an older token than it
// has taken before.
func fences(w *world, bad report) {
	for _, name := range w.names {
		e, most := w.entries[name], int64(0)
		for _, f := range e.of[trace.Effect] {
			if len(e.of[trace.Corrupted]) > 0 {
				break
			}
			if f.Result == trace.Well && f.Token < most {
				bad(f.Time, "the resource of %s takes token %d of %s after %d", e.name, f.Token, f.Replica, most)
			}
			if f.Result == trace.Well {
				most = max(most, f.Token)
			}
			if f.Result == trace.Refused && e.lived(f) {
				bad(f.Time, "the resource of %s refuses what %s, token %d, sends while its context lives", e.name, f.Replica, f.Token)
			}
		}
	}
}

// lived reports whether the context of a run lived all the time in which an effect of it was under way.
func (e *entryLog) lived(f *trace.Event) bool {
	return slices.ContainsFunc(e.find.runs[f.Token], func(r *run) bool {
		return r.Replica == f.Replica && e.inEpoch(r, f.Time) &&
			slices.ContainsFunc(r.live, func(s span) bool { return !s.from.After(f.Sent) && s.to.After(f.Time) })
	})
}

// previous: a run is given the newest tick whose success was written before it was claimed.
func previous(w *world, bad report) {
	for _, e := range w.jobs {
		if len(e.epochs) > 0 || !w.Around {
			continue
		}
		runs := slices.DeleteFunc(slices.Clone(e.runs), func(r *run) bool { return !w.isTick(e, r) })
		slices.SortStableFunc(runs, func(a, b *run) int { return a.claim.Time.Compare(b.claim.Time) })
		var newest time.Time
		next := 0
		for _, r := range runs {
			for ; next < len(e.outcomes) && !e.outcomes[next].write.Time.After(r.claim.Time); next++ {
				if o := e.outcomes[next]; o.Status == store.Succeeded && o.Request == "" {
					newest = later(newest, o.Tick)
				}
			}
			if !r.Previous.Equal(newest) {
				bad(r.Time, "%s is given %s as the last success before %s of %s, and that was %s", r.Replica, clock(r.Previous), clock(r.Tick), e.name, clock(newest))
			}
		}
	}
}

// causes: the context of a run ends only for what has happened: it is replaced when a newer tick is due, cancelled when that was
// ordered, stalled if its job has a limit to its silence.
func causes(w *world, bad report) {
	for e, r := range w.runs() {
		d := w.definition(r.Replica, e.name)
		if d == nil || r.Cancelled.IsZero() || r.claim == nil {
			continue
		}
		ok := true
		switch r.Why {
		case trace.Replaced:
			ok = d.Overlap == soloist.Replace && !d.After(r.Tick).After(r.Cancelled.Add(w.doubt(e, r)))
		case trace.Cancelled:
			ok = slices.ContainsFunc(w.of[trace.Ordered], func(o *trace.Event) bool {
				kind := store.OrderKind(o.Op)
				return o.Job == e.name && (kind == store.OrderCancel || kind == store.OrderCancelBackfill) && o.Time.Before(r.Cancelled)
			})
		case trace.Stalled:
			ok = d.Pulse != trace.NoPulse || d.HeartbeatTimeout > 0
		}
		if !ok {
			bad(r.Cancelled, "the context of %s, token %d of %s, ends as %s, and nothing of the kind has happened", r.Replica, r.Token, e.name, r.Why)
		}
	}
}

// doubt is by how much the clock of who runs may be wrong: the second that dates leave out, the way of the answer to its
// acquisition, and the drift since.
func (w *world) doubt(e *entryLog, r *run) time.Duration {
	d := time.Minute
	for _, q := range e.find.requests[r.claim.Lease] {
		if q.Op == "acquire" && q.OK() && !q.Heard.IsZero() && !q.Heard.After(r.claim.Sent) {
			d = time.Second + q.Heard.Sub(q.Sent) + r.End.Sub(q.Sent)/50 + slack
		}
	}
	return d
}

// followers: a run of a follower begins only when the service had taken that each job before it has returned well for its tick;
// under AfterAny, that the tick has an outcome.
func followers(w *world, bad report) {
	for e, r := range w.runs() {
		if !w.isTick(e, r) {
			continue
		}
		d := w.definition(r.Replica, e.name)
		for _, name := range d.Before() {
			before := w.entries[name]
			if before == nil || len(before.of[trace.Corrupted]) > 0 {
				continue
			}
			if d.FollowsAny && !before.passedBy(r) || !d.FollowsAny && !before.succeededBy(r) {
				bad(r.Time, "%s begins tick %s of %s, and %s has not ended for it", r.Replica, clock(r.Tick), e.name, name)
			}
		}
	}
}

// passedBy reports whether the watermark had passed the tick of a run of another job when that began.
func (e *entryLog) passedBy(r *run) bool {
	for _, q := range slices.Backward(e.writes[:after(e.writes, r.Time.Add(-1), timeOf)]) {
		if q.Record != nil {
			return !q.Record.Watermark.Before(r.Tick)
		}
	}
	return false
}

// succeededBy reports whether a success of the tick of a run of another job was written when that began.
func (e *entryLog) succeededBy(r *run) bool {
	return slices.ContainsFunc(e.find.outcomes[r.Tick.UnixNano()], func(o outcome) bool {
		return o.Request == "" && o.Status == store.Succeeded && o.write.Time.Before(r.Time)
	})
}

// stops: a replica that is asked to stop begins nothing that was due before, and nothing at all once its grace is over.
func stops(w *world, bad report) {
	for e, r := range w.runs() {
		stop := w.stopping[r.Replica]
		if stop == nil || trace.IsSlot(e.name) || !r.Time.After(stop.Time.Add(slack)) || r.Try != 1 || r.Request != "" && store.BackfillOf(r.Request) == 0 {
			continue
		}
		due := r.Tick.IsZero() || r.Tick.Before(stop.Time.Add(-4*time.Second)) || r.Time.After(stop.End.Add(slack))
		if due && !w.sleeps(r.Replica, stop.Time, r.Time) && !w.muted(r.Replica, r.Time) {
			bad(r.Time, "%s begins %s, and was asked to stop at %s", r.Replica, e.name, clock(stop.Time))
		}
	}
}

// muted reports whether the log of a replica takes no line at a time, or just before: a run is said to begin before it does.
func (w *world) muted(replica string, t time.Time) bool {
	return slices.ContainsFunc(w.of[trace.Blocked], func(b *trace.Event) bool {
		return b.Replica == replica && b.Time.Before(t) && b.End.Add(slack).After(t)
	})
}
