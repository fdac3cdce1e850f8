package runner

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// stepHere is the step of a job that runs on each replica. Its ticks are due
// by the clock of this one alone.
func (r *Runner) stepHere(ctx context.Context, c *call) time.Duration {
	r.source.beat()
	now := r.replica.Wall()
	if err := r.replica.degraded(); err != nil {
		r.here = here{settled: now, resting: true} // its ticks are not run late
		r.note(err)
		return restDegraded
	}
	if r.here.resting {
		r.here.resting = false
		r.note(nil)
	}
	ticks := r.job.Policy.Ticks
	if tick := r.dueHere(c, now); !tick.IsZero() {
		if c.short = r.fits(ctx, c); c.short != nil {
			return maxSleep
		}
		older := ticks.Last(now).After(tick)
		r.runHere(ctx, c, tick)
		now = r.replica.Wall()
		r.here.settled = now
		if older { // its wake-up came late, and that of the newer tick is still to come
			r.here.settled = tick
		}
	}
	next := ticks.Next(now)
	if next.IsZero() {
		return maxSleep
	}
	return next.Sub(now)
}

// dueHere returns the tick that is to run here at now, zero for none. A replica
// that starts owes nothing, nor one whose clock was put back. A wake-up owes the
// tick that it names, else the newest of the last minute: the process may have
// been started for it.
func (r *Runner) dueHere(c *call, now time.Time) time.Time {
	switch settled := &r.here.settled; {
	case settled.After(now):
		*settled = now
	case c.bounded:
		*settled = instant.Later(*settled, now.Add(-plan.WakeSpan-1))
	case settled.IsZero():
		*settled = now
	}
	tick := r.job.Policy.Ticks.Last(now)
	if named, ok := r.namedHere(c.wake, now); ok {
		tick = named
	}
	if r.job.Policy.Paused || tick.After(now) || !tick.After(r.here.settled) {
		return time.Time{}
	}
	return tick
}

// namedHere returns the tick that the wake-up names, if this job has that tick
// and this replica's clock is within a minute of it.
func (r *Runner) namedHere(wake Wake, now time.Time) (tick time.Time, ok bool) {
	p := &r.job.Policy
	tick = wake.Tick.UTC()
	ok = !p.Paused && now.Sub(tick).Abs() <= plan.WakeSpan && p.Ticks.Last(tick).Equal(tick)
	return tick, ok
}

// earlyHere is how long it takes until the tick that the wake-up names is due.
func (r *Runner) earlyHere(wake Wake) time.Duration {
	now := r.replica.Wall()
	tick, ok := r.namedHere(wake, now)
	if !ok {
		return 0
	}
	return max(0, tick.Sub(now))
}

func (r *Runner) runHere(ctx context.Context, c *call, tick time.Time) {
	r.source.setBusy(true)
	defer r.source.setBusy(false)
	a := r.attempt(ctx, tick, 1, 0, c.request)
	start := time.Now()
	r.source.setRunning(true)
	status, reason := a.Run()
	r.source.setRunning(false)
	c.ran = append(c.ran, store.Outcome{Tick: tick, Status: status, Reason: reason, Request: c.request, Replica: r.replica.Name})
	logOutcome(a, status, reason, time.Since(start).Round(time.Millisecond))
}
