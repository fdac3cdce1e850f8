package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// checkpoints: a run loads what was saved last; nothing, if the entry was created again.
func checkpoints(w *world, bad report) {
	for _, e := range w.jobs {
		kept, next := "0", e.writes
		for _, l := range e.of[trace.Loaded] {
			for ; len(next) > 0 && !next[0].Time.After(l.Time); next = next[1:] {
				switch next[0].Op {
				case "create":
					kept = "0"
				case "save":
					kept = next[0].Note
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
	for _, e := range w.logs {
		most := int64(0)
		for _, f := range e.of[trace.Effect] {
			switch {
			case len(e.of[trace.Corrupted]) > 0:
			case f.Result == trace.Well && f.Token < most:
				bad(f.Time, "the resource of %s takes token %d of %s after %d", e.name, f.Token, f.Replica, most)
			case f.Result == trace.Well:
				most = f.Token
			case f.Result == trace.Refused && slices.ContainsFunc(e.runsBy[f.Token], func(r *run) bool {
				return r.Replica == f.Replica && r.inEpoch(f.Time) &&
					slices.ContainsFunc(r.live, func(s span) bool { return !s.from.After(f.Sent) && s.to.After(f.Time) })
			}):
				bad(f.Time, "the resource of %s refuses what %s, token %d, sends while its context lives", e.name, f.Replica, f.Token)
			}
		}
	}
}

// previous: a run is given the newest tick whose success was written before it was claimed.
func previous(w *world, r *run) bool {
	var newest time.Time
	for _, o := range r.e.outcomes {
		if r.isTick() && o.Status == event.Succeeded && o.Request == "" && !o.write.Time.After(r.claim.Time) {
			newest = later(newest, o.Tick)
		}
	}
	return w.Around && r.isTick() && len(r.e.epochs) == 0 && !r.Previous.Equal(newest)
}

// causes: the context of a run ends only for what has happened: it is replaced when a newer tick is due, cancelled when that was
// ordered, stalled if its job has a limit to its silence.
func causes(w *world, r *run) bool {
	switch known := r.d != nil && !r.Cancelled.IsZero() && r.claim != nil; {
	case known && r.Why == trace.Replaced:
		return r.d.Overlap != soloist.Replace || r.d.After(r.Tick).After(r.Cancelled.Add(r.doubt()))
	case known && r.Why == trace.Cancelled:
		return !w.befell(trace.Ordered, r.e.name, time.Time{}, r.Cancelled, string(soloist.OrderCancel), string(soloist.OrderCancelBackfill))
	case known && r.Why == trace.Stalled:
		return r.d.Pulse == trace.NoPulse && r.d.HeartbeatTimeout == 0
	}
	return false
}

// doubt is by how much the clock of who runs may be wrong: the second that dates leave out, the way of the answer to its
// acquisition, and the drift since.
func (r *run) doubt() time.Duration {
	d := time.Minute
	for _, q := range r.e.requestsBy[r.claim.Lease] {
		if q.Op == "acquire" && q.OK() && !q.Heard.IsZero() && !q.Heard.After(r.claim.Sent) {
			d = time.Second + q.Heard.Sub(q.Sent) + r.End.Sub(q.Sent)/50 + slack
		}
	}
	return d
}

// followers: a run of a follower begins only when the service had taken that each job before it has returned well for its tick;
// under After.Any, that the tick has an outcome.
func followers(w *world, r *run) bool {
	return r.isTick() && slices.ContainsFunc(r.d.Before(), func(name string) bool {
		e := w.entries[name]
		return e != nil && len(e.of[trace.Corrupted]) == 0 && !e.endedBefore(r)
	})
}

// endedBefore reports whether a job had ended for the tick of a follower when that began.
func (e *entryLog) endedBefore(r *run) bool {
	if !r.d.Job.After.Any {
		return slices.ContainsFunc(e.outcomesBy[r.Tick.UnixNano()], func(o outcome) bool {
			return o.Request == "" && o.Status == event.Succeeded && o.write.Time.Before(r.Time)
		})
	}
	last := e.last(r.Time)
	return last != nil && !last.Watermark.Before(r.Tick)
}

// stops: a replica that is asked to stop begins only what it has claimed, or a tick for which it had asked for the lease before
// that was due by its clock; and none of that lives once its grace is over.
func stops(w *world, r *run) bool {
	stop, ordered := w.stopping[r.Replica], r.Request != "" && event.BackfillOf(r.Request) == 0
	if stop == nil || r.claim == nil || trace.IsSlot(r.e.name) || !r.Time.After(stop.Time.Add(slack)) || r.Try != 1 || ordered {
		return false
	}
	claimed := !r.claim.Heard.IsZero() && r.claim.Heard.Before(stop.Time.Add(slack))
	ahead := slices.ContainsFunc(r.e.requestsBy[r.claim.Lease], func(q *trace.Event) bool {
		return q.Op == "acquire" && q.Sent.Before(r.Tick.Add(r.doubt()))
	})
	drift := r.Time.Sub(stop.Time) / 100 // by its own clock
	return !claimed && !ahead || r.lives(stop.End.Add(slack+drift), w.end())
}
