package soloist

import (
	"context"
	"time"
)

// stepHere is the step of a job that runs on each replica. Its ticks are due
// by the clock of this one alone.
func (w *worker) stepHere(ctx context.Context) time.Duration {
	w.beat()
	now := w.wall()
	if err := w.unwell(); err != nil {
		w.resting, w.through = true, now // its ticks are not run late
		w.note(err)
		return unwellRest
	}
	if w.resting {
		w.resting = false
		w.note(nil)
	}
	tick := w.dueHere(now)
	if !tick.IsZero() {
		if w.unfit = w.fits(ctx); w.unfit != nil {
			return maxSleep
		}
		older := w.ticks.Last(now).After(tick)
		w.runHere(ctx, tick)
		now = w.wall()
		w.through = now
		if older { // its wake-up came late, and that of the newer tick is still to come
			w.through = tick
		}
	}
	next := w.ticks.Next(now)
	if next.IsZero() {
		return maxSleep
	}
	return next.Sub(now)
}

// dueHere returns the tick that is to run here at now, zero for none. A replica
// that starts owes nothing, nor one whose clock was put back. A wake-up owes the
// tick that it names, else the newest of the last minute: the process may have
// been started for it.
func (w *worker) dueHere(now time.Time) time.Time {
	switch {
	case w.through.After(now):
		w.through = now
	case w.ran != nil:
		w.through = later(w.through, now.Add(-wakeSpan-1))
	case w.through.IsZero():
		w.through = now
	}
	tick := w.ticks.Last(now)
	if named, ok := w.namedHere(now); ok {
		tick = named
	}
	if w.paused || tick.After(now) || !tick.After(w.through) {
		return time.Time{}
	}
	return tick
}

// namedHere returns the tick that the wake-up names, if this job has that tick
// and this replica's clock is within wakeSpan of it.
func (w *worker) namedHere(now time.Time) (tick time.Time, ok bool) {
	tick = w.wake.Tick.UTC()
	ok = !w.paused && now.Sub(tick).Abs() <= wakeSpan && w.ticks.Last(tick).Equal(tick)
	return tick, ok
}

// earlyHere is how long it takes until the tick that the wake-up names is due.
func (w *worker) earlyHere() time.Duration {
	now := w.wall()
	tick, ok := w.namedHere(now)
	if !ok {
		return 0
	}
	return max(0, tick.Sub(now))
}

func (w *worker) runHere(ctx context.Context, tick time.Time) {
	w.setBusy(true)
	defer w.setBusy(false)
	run := w.newRun(tick, 1, 0).by(w.request)
	start := time.Now()
	w.setRunning(true)
	status, reason := w.do(ctx, context.WithoutCancel(ctx), nil, run)
	w.setRunning(false)
	w.report(Fate{Tick: tick, Status: status, Reason: reason, Request: w.request, Replica: w.Replica})
	logOutcome(run, status, reason, time.Since(start).Round(time.Millisecond))
}
