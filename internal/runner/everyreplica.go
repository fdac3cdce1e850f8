package runner

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
)

// A here has the ticks of a job of EveryReplica, which has no record to keep them in. They are due by this replica's wall
// clock alone.
type here struct {
	*condition
	settled time.Time // the ticks up to here are run, or are not to be run
	resting bool      // this replica starts nothing new; see Degraded
}

// step is the step of a job that runs on each replica. It makes no storage call,
// so it also works in an outage; ticks are due by this replica's wall clock alone.
func (h *here) step(ctx context.Context, c *call) time.Duration {
	h.source.beat()
	now := h.clock.Wall()
	if err := h.replica.Degraded(); err != nil {
		// These ticks are not run late: that is what "settled up to now" says.
		h.settled, h.resting = now, true
		h.note(err)
		return restDegraded
	}
	if h.resting {
		h.resting = false
		h.note(nil)
	}
	h.replica.Orders.Awake(ctx)
	ticks := h.job.Policy.Ticks
	if tick := h.dueSince(c, now); !tick.IsZero() {
		if c.short = c.fits(ctx, h.job.Task.Timeout); c.short != nil {
			return maxSleep
		}
		older := ticks.Last(now).After(tick)
		h.runTick(ctx, c, tick)
		now = h.clock.Wall()
		h.settled = now
		// The wake-up named an older tick than the newest. The newest tick's wake-up is still
		// to come, in this process or not at all.
		if older {
			h.settled = tick
		}
		if h.waited(c, tick, now) {
			return 0
		}
	}
	next := ticks.Next(now)
	if next.IsZero() {
		return maxSleep
	}
	return next.Sub(now)
}

// waited reports whether a tick has waited for the end of the run of tick, and is to be run now.
func (h *here) waited(c *call, tick, now time.Time) bool {
	if !h.job.Policy.Queues() || !h.job.Policy.Ticks.Last(now).After(tick) {
		return false
	}
	h.settled = tick
	c.again, c.wake.Wake = c.isFirst(), Wake{}
	return !c.bounded || c.again
}

// dueSince is due for the time at which the call began, and then for now: the first step of
// a call has waited for the orders of operators, which must cost no tick.
func (h *here) dueSince(c *call, now time.Time) (tick time.Time) {
	if !c.wake.now.IsZero() {
		tick = h.due(c, c.wake.now)
		c.wake.now = time.Time{}
	}
	if tick.IsZero() {
		tick = h.due(c, now)
	}
	return tick
}

// due returns the tick that is to run here at now, zero if there is none. A replica
// that has just started has no older ticks due; neither has a replica whose clock was put back.
// A wake-up is for the tick that it names, else the newest tick of the last minute: the
// platform may have started the process for that one.
func (h *here) due(c *call, now time.Time) time.Time {
	switch settled := &h.settled; {
	case settled.After(now):
		*settled = now
	// A call runs the tick of the last minute, if this process has not run it.
	case c.bounded && len(c.ran) == 0:
		*settled = instant.Later(*settled, now.Add(-plan.WakeSpan-1))
	case settled.IsZero():
		*settled = now
	}
	tick := h.job.Policy.Ticks.Last(now)
	if named, ok := h.named(c.wake.Wake, now); ok {
		tick = named
	}
	if h.job.Policy.Paused || tick.After(now) || !tick.After(h.settled) {
		return time.Time{}
	}
	// By what was last read: such a job needs no store, so it does not wait for a newer order. A tick that has waited for a
	// run, and came due before the pause, waits for its end too.
	orders, at := h.orders(), h.clock.Best()
	paused := orders.Pause.On(at)
	if h.job.Policy.InPause(tick, orders, at) || paused && !h.job.Policy.Queues() {
		h.settled = tick
		return time.Time{}
	}
	if paused {
		return time.Time{}
	}
	return tick
}

// named returns the tick that the wake-up names, zero if it is not believed: if the
// job has no such tick, or if this replica's clock is more than a minute away from it. A
// call of RunDue asks once, when it begins: after a run the clock may have come near a
// tick that was not believed.
func (h *here) named(wake Wake, now time.Time) (tick time.Time, ok bool) {
	p := &h.job.Policy
	tick = wake.Tick.UTC()
	if p.Paused || now.Sub(tick).Abs() > plan.WakeSpan || !p.Ticks.Last(tick).Equal(tick) {
		return time.Time{}, false
	}
	return tick, true
}

// early returns how long it takes until the tick that the wake-up names is due.
func (h *here) early(wake Wake) time.Duration {
	now := h.clock.Wall()
	tick, ok := h.named(wake, now)
	if !ok {
		return 0
	}
	return max(0, tick.Sub(now))
}

// runTick runs a tick without lease, claim and record. Only its events and the report of
// the call report its outcome. No operator can end it.
func (h *here) runTick(ctx context.Context, c *call, tick time.Time) {
	h.source.setBusy(true)
	defer h.source.setBusy(false)
	a := h.attempt(ctx, event.Run{Tick: tick, Request: c.request, Attempt: 1}, h.client.Length/3+time.Second, func() {})
	a.Under.Grace = h.replica.Grace
	a.Under.Around = h.around(tick, h.source.state.get().succeeded)
	if c.bounded {
		a.Under.Until, _ = ctx.Deadline()
	}
	start := time.Now()
	cancelled, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	a.Under.Cancelled = cancelled
	rec := record.Record{Run: record.Run{Tick: tick, Request: c.request}}
	replaced := h.replacing(&rec, h.clock.Wall, func() error { return h.cannotFollow(ctx, c) }, cancel)
	h.source.setRunning(true)
	status, reason := a.Run()
	h.source.setRunning(false)
	replaced()
	if status == event.Succeeded && c.request == "" {
		h.source.state.set(func(n *snapshot) { n.succeeded = instant.Later(n.succeeded, tick) })
	}
	outcome := event.Outcome{Tick: tick, Status: status, Reason: reason, Request: c.request, Replica: h.replica.Name}
	c.ran = append(c.ran, outcome)
	emitEnded(a, outcome, time.Since(start).Round(time.Millisecond))
}
