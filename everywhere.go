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
	if w.through.IsZero() || w.through.After(now) {
		w.through = now // a replica that starts owes nothing, nor one whose clock was put back
	}
	if tick := w.ticks.Last(now); tick.After(w.through) && !w.paused {
		w.runHere(ctx, tick)
		now = w.wall()
		w.through = now
	}
	next := w.ticks.Next(now)
	if next.IsZero() {
		return maxSleep
	}
	return next.Sub(now)
}

func (w *worker) runHere(ctx context.Context, tick time.Time) {
	w.setBusy(true)
	defer w.setBusy(false)
	run := w.newRun(tick, 1, 0)
	start := time.Now()
	w.setRunning(true)
	status, reason := w.do(ctx, context.WithoutCancel(ctx), nil, run)
	w.setRunning(false)
	w.report(Fate{Tick: tick, Status: status, Reason: reason, Replica: w.Replica})
	logOutcome(run, status, reason, time.Since(start).Round(time.Millisecond))
}
