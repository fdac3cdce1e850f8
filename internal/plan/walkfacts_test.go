package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// Facts are what has really happened in a world. They are noted by the moves, and never read from the record.
type facts struct {
	runs    []*run
	told    []store.Outcome        // of ticks, oldest first; From is always set
	answers map[work]store.Outcome // of runs by hand and of ticks of backfills
	asked   []store.Order          // runs by hand
	fill    store.Backfill         // the last one
	pauses  []store.Span           // To is later than any walk while nothing ends one
	selfs   []store.Span           // of the job by itself
	cancels map[int64]bool         // by token
	called  map[work]bool          // off: what the run of that token was for
	resumed int64                  // the token of the last resume: a failure up to it pauses nothing
	streak  int64                  // failures since a success, or since the job went on after it had paused itself
	changed bool                   // the schedule has changed
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
	token    int64
	from, to time.Time    // from its claim to its end; to is zero while no replica knows of the end
	end      store.Status // as its function returned; empty: it did not
	reason   string       // of its end, or of its death
	died     bool
	back     bool // its claim was given up
	free     bool // no tick waited when it was claimed
}

// broke reports whether the run was ended before its time, and dead whether that has cost its runner.
func (r *run) broke() bool { return r.died || r.end == store.Abandoned || r.end == store.Stalled }
func (r *run) dead() bool  { return r.broke() && !strings.HasPrefix(r.reason, Stopped) }

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

// last is the run of the last claim.
func (w *world) last() *run { return w.runs[len(w.runs)-1] }

func (w *world) ended(status store.Status, reason string) {
	r := w.last()
	r.end, r.reason, r.to = status, reason, w.now
}

// ordered notes an order.
func (w *world) ordered(o store.Order) {
	n := len(w.pauses) - 1
	on := n >= 0 && w.now.Before(w.pauses[n].To)
	switch o.Kind {
	case store.OrderPause:
		if !on {
			w.pauses, n = append(w.pauses, store.Span{From: w.now}), n+1
		}
		if w.pauses[n].To = forever; !o.Until.IsZero() {
			w.pauses[n].To = o.Until.Add(-1)
		}
	case store.OrderResume:
		if w.resumed = o.Token; on {
			w.pauses[n].To = w.now
		}
		if n := len(w.selfs) - 1; n >= 0 {
			w.selfs[n].To = instant.Earlier(w.selfs[n].To, w.now)
		}
	case store.OrderRun:
		w.asked = append(w.asked, o)
	case store.OrderCancel:
		w.cancels[o.Token] = true
		for _, r := range w.runs {
			w.called[r.work] = w.called[r.work] || r.token == o.Token
		}
	case store.OrderBackfill:
		w.fill = o.Backfill
		w.fill.Seq = o.Seq
	case store.OrderCancelBackfill:
		w.fill.Cancelled.Seq = o.Seq
	}
}

// forever is when a pause ends that nothing ends.
var forever = midnight.AddDate(100, 0, 0)

// within reports whether a tick is in one of some spans.
func within(tick time.Time, spans []store.Span) bool {
	return slices.ContainsFunc(spans, func(s store.Span) bool { return tick.After(s.From) && !tick.After(s.To) })
}

// inPause reports whether a tick came due in a pause, and paused whether the job is paused now.
func (w *world) inPause(tick time.Time) bool { return within(tick, w.pauses) || within(tick, w.selfs) }
func (w *world) paused() bool                { return w.inPause(w.now.Add(1)) }

// under reports whether an instant is in a run. proved: in one that has ended by itself, and before which no tick waited.
func (w *world) under(at time.Time, proved bool) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		counts := !r.back && (r.end != "" || r.died) && store.BackfillOf(r.request) == 0 && !(proved && (r.broke() || !r.free))
		return counts && at.After(r.from) && (r.to.IsZero() || !at.After(r.to))
	})
}

// deadline is how late a first attempt may begin.
func (w *world) deadline() time.Duration {
	if w.p.StartingDeadline == 0 && w.p.Missed == SkipMissed {
		return w.p.Lease
	}
	return w.p.StartingDeadline
}

// waits reports whether an order has no run and no outcome. The orders keep it for a day after its end.
func (w *world) waits(o store.Order) bool {
	_, answered := w.answers[work{request: o.Name}]
	all, _ := w.attempts(work{request: o.Name})
	kept := slices.ContainsFunc(w.orders().Requests, func(q store.Request) bool { return q.Seq == o.Seq })
	return !answered && kept && len(all) == 0
}

// A prior is a job that this one follows, which does whatever it likes.
type prior struct {
	rec store.Record
	all []store.Outcome // of its ticks, oldest first; Start is when it was written
}

// precede lets the jobs before this one have outcomes.
func (w *world) precede() {
	for i := range w.prior {
		b := &w.prior[i]
		for w.calm || w.IntN(3) > 0 {
			tick, through := w.p.Ticks.Next(b.rec.Watermark), w.p.Ticks.Last(w.now)
			if tick.After(w.now) {
				break
			}
			f := store.Outcome{Tick: tick, Status: pick(w, store.Succeeded, store.Succeeded, store.Failed, store.Cancelled), Start: w.now, End: w.now}
			if w.IntN(8) == 0 {
				f.Request, f.Status = "by hand", store.Succeeded
			} else if w.IntN(5) == 0 || w.now.Sub(tick) > time.Hour {
				f = store.Outcome{From: b.rec.Watermark, Tick: through, Count: 2, Status: pick(w, store.Missed, store.Skipped), Start: w.now}
			}
			b.rec.History = append([]store.Outcome{f}, b.rec.History[:min(len(b.rec.History), 19)]...)
			if f.Request == "" {
				b.all, b.rec.Watermark = append(b.all, f), f.Tick
			}
			w.say("%s: %s %s", b.rec.Job, f.Status, f.Tick.Format(time.TimeOnly))
		}
		w.before[i] = w.before[i].Updated(&b.rec, w.now)
	}
}

// of returns the outcome of a tick of a job before this one, and whether its record still has it.
func (b *prior) of(tick time.Time) (f store.Outcome, known bool) {
	has := func(f store.Outcome) bool {
		return f.Request == "" && (f.Tick.Equal(tick) || tick.After(f.From) && !tick.After(f.Tick) && !f.From.IsZero())
	}
	if i := slices.IndexFunc(b.all, has); i >= 0 {
		f = b.all[i]
	}
	return f, slices.ContainsFunc(b.rec.History, has)
}

// ready returns when a tick could be run: when it came due, or when the last of the jobs before this one had its
// outcome. It is zero if it could not; then the same holds back to before.
func (w *world) ready(tick time.Time) (at, before time.Time) {
	at = tick
	for i := range w.prior {
		f, known := w.prior[i].of(tick)
		if !known || f.Status != store.Succeeded && !w.p.AfterAny {
			return time.Time{}, instant.Earlier(instant.Later(f.From, midnight), tick.Add(-1))
		}
		at = instant.Later(at, f.Start)
	}
	return at, tick
}

// newest returns the newest tick that could be run now, zero if there is none.
func (w *world) newest() time.Time {
	for tick := w.p.Ticks.Last(w.now); tick.After(midnight); {
		at, before := w.ready(tick)
		if !at.IsZero() {
			return tick
		}
		if tick = w.p.Ticks.Last(tick.Add(-1)); before.After(midnight) {
			tick = w.p.Ticks.Last(before)
		}
	}
	return time.Time{}
}
