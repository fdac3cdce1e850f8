package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Facts are what has really happened in a world. They are noted by the moves, and never read from the record.
type facts struct {
	runs      []*run
	answered  map[work]bool // runs by hand and ticks of backfills that have their outcome
	prior     []*prior      // the jobs that this one follows
	pauses    []store.Span
	selfs     []store.Span // pauses of the job by itself
	succeeded time.Time    // the newest tick that has
	streak    int64        // failures since a success, or since the job went on after it had paused itself
	changed   bool         // the schedule has changed
}

// A work is what a run is about, in all its attempts.
type work struct {
	request string
	tick    time.Time // zero for a run by hand
}

func workOf(request string, tick time.Time) work {
	if request != "" && store.BackfillOf(request) == 0 {
		tick = time.Time{}
	}
	return work{request, tick}
}

// A run is one attempt.
type run struct {
	work
	token     int64
	from, to  time.Time    // from its claim to its end; to is zero if it has died
	end       store.Status // as its function returned, or Abandoned if it has died
	reason    string
	back      bool // its claim was given up
	cancelled bool
	free      bool // no tick waited when it was claimed
}

// broke reports whether the run was ended before its time, and dead whether that has cost its runner.
func (r *run) broke() bool { return r.end == store.Abandoned || r.end == store.Stalled }
func (r *run) dead() bool  { return r.broke() && r.reason != Stopped }

// attempts returns the attempts of a work that were not given up, and how many of them were deaths.
func (w *world) attempts(of work) (all []*run, dead int) {
	for _, r := range w.runs {
		if r.work == of && !r.back {
			if all = append(all, r); r.dead() {
				dead++
			}
		}
	}
	return all, dead
}

// cancelled reports whether an operator has cancelled an attempt.
func (w *world) cancelled(of work) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.work == of && r.cancelled })
}

// last is the run of the last claim.
func (w *world) last() *run { return w.runs[len(w.runs)-1] }

// within reports whether an instant is in one of some spans.
func within(at time.Time, spans []store.Span) bool {
	return slices.ContainsFunc(spans, func(s store.Span) bool { return at.After(s.From) && !at.After(s.To) })
}

// inPause reports whether a tick came due in a pause, and paused whether the job is paused now.
func (w *world) inPause(tick time.Time) bool { return within(tick, w.pauses) || within(tick, w.selfs) }
func (w *world) paused() bool                { return w.inPause(w.now.Add(1)) }

// under reports whether an instant is in a run. sure: in one that has ended by itself, and before which no tick waited.
func (w *world) under(at time.Time, sure bool) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		counts := !r.back && store.BackfillOf(r.request) == 0 && !(sure && (r.broke() || !r.free))
		return counts && at.After(r.from) && !at.After(r.to)
	})
}

// against returns the true reasons not to run a tick that has not begun, and what it is then. sure: only those that no replica can
// overlook.
func (w *world) against(tick time.Time, sure bool) map[string]store.Status {
	reasons := map[string]store.Status{}
	is := func(status store.Status, reason string, holds bool) {
		if holds {
			reasons[reason] = status
		}
	}
	ready, status, reason := w.ready(tick)
	newer, paused, all, deadline := w.newest().After(tick), w.inPause(tick), w.p.Missed == RunAll, w.p.StartingDeadline
	if deadline == 0 && w.p.Missed == SkipMissed {
		deadline = w.p.Lease
	}
	is(status, reason, status != "")
	is(store.Skipped, Paused, paused || w.p.Paused)
	is(store.Missed, "a newer one was due", newer && !all && !paused)
	is(store.Missed, "past the starting deadline", deadline > 0 && w.now.Sub(ready) > deadline && !paused)
	is(store.Missed, "too many were due", all && !sure && w.p.Ticks.Count(tick, w.now, maxBacklog) == maxBacklog && !paused)
	is(store.Skipped, "overlap", w.under(tick, sure) && !all && !w.p.Follows() && (newer || w.p.Overlap == SkipOverlap))
	return reasons
}

// againstMore returns the true reasons not to run a tick once more whose run was interrupted.
func (w *world) againstMore(tick time.Time) (reasons []string) {
	ready, _, _ := w.ready(tick)
	if newest := w.newest(); w.p.Overlap == Replace && newest.After(tick) && !w.inPause(newest) {
		reasons = append(reasons, "a newer tick was due")
	}
	if w.p.StartingDeadline > 0 && w.now.Sub(ready) > w.p.StartingDeadline {
		reasons = append(reasons, "the starting deadline has passed")
	}
	if w.paused() {
		reasons = append(reasons, "a run was ordered in the pause")
	}
	return reasons
}
