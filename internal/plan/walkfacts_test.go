package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

// Facts are what has really happened in a world. They are noted by the moves, and never read from the record.
type facts struct {
	runs      []*run
	answered  map[work]bool // runs by hand and ticks of backfills that have their outcome
	prior     []*prior      // the jobs that this one follows
	seen      []Predecessor // what is known of them
	pauses    []record.Span
	selfs     []record.Span // pauses of the job by itself
	succeeded time.Time     // the newest tick that has
	streak    int64         // failures since a success, or since the job went on after it had paused itself
	changed   bool          // the schedule has changed
}

// A work is what a run is about, in all its attempts.
type work struct {
	request string
	tick    time.Time // zero for a run by hand
}

func workOf(request string, tick time.Time) work {
	if request != "" && event.BackfillOf(request) == 0 {
		tick = time.Time{}
	}
	return work{request, tick}
}

// A run is one attempt.
type run struct {
	work
	token     int64
	from, to  time.Time    // from its claim to its end; to is zero if it has died
	end       event.Status // as its function returned, or Abandoned if it has died
	reason    string
	back      bool  // its claim was given up
	cancelled int64 // the token of the last claim when that was ordered; zero: it was not
	free      bool  // at its claim no tick waited, and the definition of its replica was in force: its end skips ticks
}

// broke reports whether the run was ended before its time, and dead whether that has cost its runner.
func (r *run) broke() bool { return r.end == event.Abandoned || r.end == event.Stalled }
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

// cancelled reports whether an operator has cancelled an attempt. sure: in time for the next claim.
func (w *world) cancelled(of work, sure bool) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.work == of && r.cancelled != 0 && !(sure && r.cancelled > r.token) })
}
func (w *world) last() *run { return w.runs[len(w.runs)-1] }

// forever is when a pause ends that nothing ends.
var forever = midnight.AddDate(100, 0, 0)

// within reports whether an instant is in one of some spans.
func within(at time.Time, spans []record.Span) bool {
	return slices.ContainsFunc(spans, func(s record.Span) bool { return at.After(s.From) && !at.After(s.To) })
}

// inPause reports whether a tick came due in a pause, and paused whether the job is paused now.
func (w *world) inPause(tick time.Time) bool { return within(tick, w.pauses) || within(tick, w.selfs) }
func (w *world) paused() bool                { return w.inPause(w.now.Add(1)) }

// under reports whether an instant is in a run. sure: in one that has ended by itself, and is free.
func (w *world) under(at time.Time, sure bool) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		counts := !r.back && event.BackfillOf(r.request) == 0 && !(sure && (r.broke() || !r.free))
		return counts && at.After(r.from) && !at.After(r.to)
	})
}

// A why is the true reasons not to run a tick now, and what the tick is then.
type why map[string]event.Status

func (y why) add(status event.Status, reason string, holds bool) {
	if holds {
		y[reason] = status
	}
}

// against returns the reasons not to run a tick that has not begun. sure: only those that no replica can overlook.
func (w *world) against(tick time.Time, sure bool) why {
	y := why{}
	ready, status, reason := w.ready(tick)
	newer, paused, all, deadline := w.newest().After(tick), w.inPause(tick) || w.p.Paused, w.p.Late.Missed == RunAll, w.p.Late.Start
	if deadline == 0 && w.p.Late.Missed == SkipMissed {
		deadline = w.p.Lease
	}
	y.add(status, reason, status != "" && !paused)
	y.add(event.Skipped, Paused, paused)
	y.add(event.Missed, "a newer one was due", newer && !all && !paused)
	y.add(event.Missed, "past the starting deadline", deadline > 0 && w.now.Sub(ready) > deadline && !paused)
	y.add(event.Missed, "too many were due", all && !sure && w.p.Ticks.Count(tick, w.now, maxBacklog) == maxBacklog && !paused)
	y.add(event.Skipped, "overlap", w.under(tick, sure) && !all && !paused && !w.p.Follows() && (newer || w.p.Overlap == SkipOverlap))
	return y
}

// againstMore returns the reasons not to run a tick once more whose run was interrupted.
func (w *world) againstMore(tick time.Time) why {
	y, newer := why{}, w.p.Ticks.Last(w.now)
	for newer.After(tick) && w.inPause(newer) {
		newer = w.p.Ticks.Last(newer.Add(-1))
	}
	ready, _, _ := w.ready(tick)
	y.add(event.Abandoned, "a newer tick was due", w.p.Overlap == Replace && newer.After(tick))
	y.add(event.Abandoned, "the starting deadline has passed", w.p.Late.Start > 0 && w.now.Sub(ready) > w.p.Late.Start)
	y.add(event.Abandoned, "a run was ordered in the pause", w.paused())
	return y
}

// A prior is a job that this one follows, which does whatever it likes.
type prior struct {
	rec record.Record
	all []event.Outcome // oldest first; Start is when it was written
}

// precede lets the jobs before this one have outcomes.
func (w *world) precede() {
	for i, b := range w.prior {
		for w.calm || w.IntN(3) > 0 {
			tick, through := w.p.Ticks.Next(b.rec.Watermark), w.p.Ticks.Last(w.now)
			if tick.After(w.now) {
				break
			}
			status := pick(w, event.Succeeded, event.Succeeded, event.Failed, event.Cancelled)
			f := event.Outcome{Tick: tick, Status: status, Start: w.now, End: w.now}
			if w.IntN(5) == 0 || w.now.Sub(tick) > time.Hour {
				f = event.Outcome{From: b.rec.Watermark, Tick: through, Count: 2, Status: pick(w, event.Missed, event.Skipped), Start: w.now}
			}
			if w.IntN(8) == 0 {
				f.Request = "by hand"
			} else {
				b.rec.Watermark = f.Tick
			}
			b.all, b.rec.History = append(b.all, f), append([]event.Outcome{f}, b.rec.History[:min(len(b.rec.History), 19)]...)
			w.say("%s: %s %s", b.rec.Job, f.Status, f.Tick.Format(time.TimeOnly))
		}
		w.seen[i] = w.seen[i].Updated(&b.rec, w.now)
	}
}

// ready returns when a tick could be run: when it came due, or when the last of the jobs before this one had its outcome.
// It is zero if it could not; then status and reason say why, unless a job before is not that far.
func (w *world) ready(tick time.Time) (at time.Time, status event.Status, reason string) {
	at = tick
	for _, b := range w.prior {
		i := slices.IndexFunc(b.all, func(f event.Outcome) bool { return f.Request == "" && !f.Tick.Before(tick) })
		switch {
		case i < 0:
			return time.Time{}, "", ""
		case i < len(b.all)-len(b.rec.History):
			return time.Time{}, event.Missed, "the outcome of " + b.rec.Job + " is not known"
		case b.all[i].Status != event.Succeeded && !w.p.AfterAny:
			return time.Time{}, event.Skipped, b.rec.Job + " " + string(b.all[i].Status)
		}
		at = instant.Later(at, b.all[i].Start)
	}
	return at, "", ""
}

// newest returns the newest tick that could be run now, zero if there is none.
func (w *world) newest() (tick time.Time) {
	if !w.p.Follows() {
		return w.p.Ticks.Last(w.now)
	}
	for _, b := range w.prior { // what holds of a tick holds up to the next outcome of some job before
		for _, f := range slices.Backward(b.all) {
			if at, _, _ := w.ready(f.Tick); !at.IsZero() {
				tick = instant.Later(tick, f.Tick)
				break
			}
		}
	}
	return tick
}
