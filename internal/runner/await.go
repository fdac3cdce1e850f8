package runner

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
)

// errOrdered says that a manual run was ordered, which comes before the next tick.
var errOrdered = errors.New("a run by hand was ordered")

// Other reasons why a tick is not run under the lease that was acquired ahead of it.
var (
	errSetBack = errors.New("the clock was set back")
	errTooLate = errors.New("past the starting deadline")
)

// awaitTick waits, under the lease, until a tick is due. It returns why the tick must not
// be run under this lease after all: nothing of what ended the wait is reported twice. It asks for a
// hindrance before the wait, when one may have come, and once the tick is due: the machine may have been suspended.
func (h *hold) awaitTick() error {
	for asks := true; ; {
		left := h.call.ahead.Sub(h.now())
		if asks || left <= 0 {
			if err := h.hindrance(); err != nil || left <= 0 {
				return err
			}
		}
		if h.replica.Orders.Stale() != nil {
			h.refreshOrders(left)
			left = max(0, h.call.ahead.Sub(h.now()))
		}
		nap := ontime.Nap(left)
		if nap == left { // the last one
			h.willStart()
		}
		asks = h.nap(nap) || nap == ontime.Longest
	}
}

// refreshOrders reads the orders, which are too old to start anything by. It takes no longer than
// what is left until the tick. At the tick it would be too late: an armed claim would be taken back.
func (h *hold) refreshOrders(left time.Duration) {
	ctx, cancel := context.WithTimeout(h.session.Context(), left)
	defer cancel()
	_ = h.replica.Orders.Refresh(ctx) // who starts a run asks whether they are known
}

// hindrance returns why the tick that a lease was acquired ahead of must not be run here,
// nil if it may.
func (h *hold) hindrance() error {
	v := h.ordered(&h.before)
	p := &h.job.Policy
	switch left := h.call.ahead.Sub(v.Now); {
	case h.session.Expired():
		return context.Cause(h.session.Context())
	case h.stops(h.call.ahead):
		return supervise.ErrStopped
	case v.IsPaused():
		return errPaused
	case p.Ordered(v) && h.stop.Err() == nil: // after a stop only the expected tick is run
		return errOrdered
	case left > 2*p.Lead():
		return errSetBack
	case p.TooLate(-left):
		return errTooLate
	}
	return h.replica.Degraded()
}

// stops reports whether a stop keeps the next run from beginning. Once other replicas may
// have looked before the tick of the call, this one runs it within its grace: they expect it to,
// and would find the tick only at their next look. The clocks of replicas may differ a
// little; a clock that is fast by more has looked too early, and finds the tick late. At least
// half of the grace is left for the run.
func (h *hold) stops(tick time.Time) bool {
	ahead := h.call.ahead
	switch {
	case h.stop.Err() == nil:
		return false
	case !tick.Equal(ahead):
		return true
	}
	p, left := &h.job.Policy, ahead.Sub(h.now())
	expected := !ahead.IsZero() && left < p.LookFirst()+p.Lead()/8
	return !expected || h.graceLeft() <= max(0, left)+h.grace()/2
}

// nap returns false after d. It returns true when an order has come, when the replica is to stop, or when
// the lease is lost. A stop that has come already does not end it.
func (h *hold) nap(d time.Duration) (cut bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	stopped := h.stop.Done()
	if h.stop.Err() != nil {
		stopped = nil
	}
	select {
	case <-t.C:
		return false
	case <-h.hand.heed:
	case <-stopped:
	case <-h.session.Context().Done():
	}
	return true
}

// due waits until the tick of the call is due, if the lease was acquired ahead. It returns false if
// the lease is to be given up. A manual run that was ordered is claimed instead of the tick.
// In the wait what is known of the orders may have become too old.
func (h *hold) due() bool {
	if h.call.ahead.IsZero() {
		return true
	}
	err := h.awaitTick()
	return (err == nil || errors.Is(err, errOrdered)) && h.replica.Orders.Refresh(h.session.Context()) == nil
}

// claimAhead returns the claim of the tick of the call, if it can be written before the tick. The
// service's clock was read under this lease, in the answer to its acquisition. The first
// claim of an entry has to wait for its token; see decide. A tick whose claim was given up may
// have been cancelled since, so its next claim waits for the orders at the tick.
func (h *hold) claimAhead() (claim plan.Claim, ok bool) {
	c, rec := h.call, &h.view.rec
	if c.ahead.IsZero() || rec.Run.Claimed.IsZero() || plan.MayBeCancelled(rec) || h.stop.Err() != nil {
		return plan.Claim{}, false
	}
	claim, ok = h.job.Policy.ClaimEarly(h.decideBy(c), c.ahead)
	return claim, ok && h.barred() == nil && h.hindrance() == nil
}

// willStart notes that the run is about to start. A call that ends some time neither
// waits for others nor lets them wait.
func (h *hold) willStart() {
	if h.started == nil && !h.call.bounded {
		h.started = h.replica.jobs.starts.add()
	}
}

// hasStarted notes that the run has started, or that it will not. It may be called again.
func (h *hold) hasStarted() {
	if h.started != nil {
		h.started()
		h.started = nil
	}
}
