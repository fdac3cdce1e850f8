package runner

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
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
//
// before is the record without a claim of that tick.
func (r *Runner) awaitTick(stop context.Context, c *call, s *lease.Session, before *store.Record) error {
	for asks := true; ; {
		left := c.ahead.Sub(r.now())
		if asks || left <= 0 {
			if err := r.hindrance(stop, c, s, before); err != nil || left <= 0 {
				return err
			}
		}
		if r.replica.Orders.Stale() != nil {
			r.refreshOrders(s, left)
			left = max(0, c.ahead.Sub(r.now()))
		}
		nap := ontime.Nap(left)
		if nap == left { // the last one
			r.willStart(c)
		}
		asks = r.pauseUnder(stop, c, s, nap) || nap == ontime.Longest
	}
}

// refreshOrders reads the orders, which are too old to start anything by. It takes no longer than
// what is left until the tick. At the tick it would be too late: an armed claim would be taken back.
func (r *Runner) refreshOrders(s *lease.Session, left time.Duration) {
	ctx, cancel := context.WithTimeout(s.Context(), left)
	defer cancel()
	_ = r.replica.Orders.Refresh(ctx) // who starts a run asks whether they are known
}

// hindrance returns why the tick that a lease was acquired ahead of must not be run here,
// nil if it may.
func (r *Runner) hindrance(stop context.Context, c *call, s *lease.Session, before *store.Record) error {
	v := r.decideBy(&call{})
	v.Record = before
	p := &r.job.Policy
	switch left := c.ahead.Sub(v.Now); {
	case s.Expired():
		return context.Cause(s.Context())
	case r.stops(stop, c, c.ahead):
		return supervise.ErrStopped
	case p.PausedAt(v):
		return errPaused
	case p.Ordered(v) && stop.Err() == nil: // after a stop only the expected tick is run
		return errOrdered
	case left > 2*p.Lead():
		return errSetBack
	case p.TooLate(-left):
		return errTooLate
	}
	return r.replica.degraded()
}

// stops reports whether a stop keeps the next run from beginning. Once other replicas may
// have looked before the tick of c, this one runs it within its grace: they expect it to,
// and would find the tick only at their next look. The clocks of replicas may differ a
// little; a clock that is fast by more has looked too early, and finds the tick late. At least
// half of the grace is left for the run.
func (r *Runner) stops(stop context.Context, c *call, tick time.Time) bool {
	switch {
	case stop.Err() == nil:
		return false
	case !tick.Equal(c.ahead):
		return true
	}
	p, left := &r.job.Policy, c.ahead.Sub(r.now())
	expected := !c.ahead.IsZero() && left < p.LookFirst()+p.Lead()/8
	return !expected || r.graceLeft(stop, c) <= max(0, left)+r.grace()/2
}

// pauseUnder returns false after d. It returns true when an order has come, when the replica is to stop, or when
// the lease is lost. A stop that has come already does not end it.
func (r *Runner) pauseUnder(stop context.Context, c *call, s *lease.Session, d time.Duration) (cut bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	stopped := stop.Done()
	if stop.Err() != nil {
		stopped = nil
	}
	select {
	case <-t.C:
		return false
	case <-c.hand.heed:
	case <-stopped:
	case <-s.Context().Done():
	}
	return true
}

// due waits until the tick of c is due, if the lease was acquired ahead. It returns false if
// the lease is to be given up. A manual run that was ordered is claimed instead of the tick.
// In the wait what is known of the orders may have become too old.
func (r *Runner) due(stop context.Context, c *call, s *lease.Session) bool {
	if c.ahead.IsZero() {
		return true
	}
	err := r.awaitTick(stop, c, s, &r.view.rec)
	return (err == nil || errors.Is(err, errOrdered)) && r.replica.Orders.Refresh(s.Context()) == nil
}

// claimAhead returns the claim of the tick of c, if it can be written before the tick. The
// service's clock was read under this lease, in the answer to its acquisition. The first
// claim of an entry has to wait for its token; see decide. A tick whose claim was given up may
// have been cancelled since, so its next claim waits for the orders at the tick.
func (r *Runner) claimAhead(stop context.Context, c *call, s *lease.Session) (claim plan.Claim, ok bool) {
	rec := &r.view.rec
	if c.ahead.IsZero() || rec.Run.Claimed.IsZero() || plan.MayBeCancelled(rec) || stop.Err() != nil {
		return plan.Claim{}, false
	}
	claim, ok = r.job.Policy.ClaimEarly(r.decideBy(c), c.ahead)
	return claim, ok && r.barred() == nil && r.hindrance(stop, c, s, rec) == nil
}

// willStart notes that the run of a call is about to start. A call that ends some time neither
// waits for others nor lets them wait.
func (r *Runner) willStart(c *call) {
	if c.started == nil && !c.bounded {
		c.started = r.replica.jobs.starts.add()
	}
}

// hasStarted notes that the run of the call has started, or that it will not. It may be called again.
func (c *call) hasStarted() {
	if c.started != nil {
		c.started()
		c.started = nil
	}
}
