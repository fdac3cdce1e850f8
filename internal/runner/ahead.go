package runner

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
)

// A lead is how long before a tick this replica acts; see plan.Policy.Lead. It is drawn
// once for each tick.
type lead struct {
	tick time.Time
	last bool          // it was drawn for the replica that ran the last tick
	d    time.Duration // until the tick, when it looks or acquires
	grab time.Duration // the same, when it acquires what it has found free

	outrun time.Time // the tick before which another replica was first with the lease
}

// lookAhead adds to a view how long before the next tick this replica acts. A call of
// RunDue or RunNow does not wait for ticks. A job that skips its ticks has nothing to be on time
// for, one of a group needs a slot first, and a follower does not know when it is due. A replica that
// may not be able to write does nothing ahead, so that it keeps no lease from the others, until it
// tries again.
func (d *driver) lookAhead(v *plan.View) {
	if d.bounded || d.job.Policy.Paused || !d.mayActAhead() || d.denial.bars(time.Now()) {
		return
	}
	next := d.job.Policy.Upcoming(*v, &d.view.seen)
	if next.IsZero() {
		return
	}
	// If this replica waits for another one to claim or start a tick, it looks soon after it, and the drawn lead keeps the
	// looks of the replicas apart.
	awaitsOther := v.Record.Run.Armed || v.Now.Sub(d.view.seen.Expected) <= d.job.Policy.Lease
	if next.Sub(v.Now) > farAway && !awaitsOther {
		lead := d.job.Policy.Lead()
		v.Ahead.Lead, v.Ahead.Grab = lead, lead
		return
	}
	l := &d.view.lead
	v.Ahead.Last = d.ranLast() && !l.outrun.Equal(next)
	if !l.tick.Equal(next) || l.last != v.Ahead.Last {
		*l = lead{tick: next, last: v.Ahead.Last, outrun: l.outrun}
		l.d, l.grab = d.drawLead(v.Ahead.Last, next)
	}
	v.Ahead.Lead, v.Ahead.Grab = l.d, l.grab
}

// mayActAhead reports whether the job is claimed by the replica that was first before its tick.
func (b *base) mayActAhead() bool { return b.job.Group == nil && !b.job.Policy.Follows() }

// farAway is how far away a tick is before which this replica looks at the job again, so that
// nothing is drawn for it yet: an idle job has no random numbers.
const farAway = 2 * plan.LookEvery

// drawLead returns how long before a tick this replica looks, and acquires what it finds free.
// The replica that ran the last tick does not look. The more jobs a replica runs, the later it
// acquires, so that a replica which runs few of them is before it. A replica that runs more than half of all
// jobs leaves some ticks to others: it acquires after they have looked. One whose writes may not
// arrive is last of all; see tryToProve.
func (r *Runner) drawLead(last bool, tick time.Time) (look, grab time.Duration) {
	p, load := &r.job.Policy, r.replica.jobs.load.share()
	first, window := p.Lead(), p.Lead()-p.LookFirst()
	switch {
	case r.denial.unproved:
		return r.lastOfAll(), r.lastOfAll()
	case last && r.replica.jobs.load.cedes(r.client.Jitter):
		return p.Cede(), p.Cede()
	case last:
		first -= r.client.Jitter.UpTo(time.Duration(float64(window) * load))
		return first, first
	}
	window = p.LookFirst() - p.LookLast()
	grab = p.LookFirst() - r.client.Jitter.UpTo(window/2) - time.Duration(float64(window/2)*min(1, 2*load))
	if r.replica.reads.Many() { // jobs of one tick are looked at by one listing
		return p.LookFirst() - r.replica.reads.Within(window/8, tick), min(grab, p.LookFirst()-window/4)
	}
	return grab, grab
}

// raceOver is how long a replica waits that lost a race for a lease after others have looked.
const raceOver = 100 * time.Millisecond

// keeps returns the tick before which this replica need not release the lease that it
// holds: the next tick is so near that it would acquire the lease again at once. Once a
// lease's length has passed it releases the lease anyway, and lets others be first:
// a replica with another definition, or a manual run, may wait for it.
func (h *hold) keeps() (tick time.Time, ok bool) {
	p, s := &h.job.Policy, h.session
	if h.leavesAfter(&h.view.rec) {
		return time.Time{}, false
	}
	next := p.NextTick(&h.view.rec)
	v := h.decideBy()
	if _, todo := p.Claim(v); todo || v.IsPaused() || h.replica.Degraded() != nil || !s.Reusable() {
		return time.Time{}, false
	}
	if s.Age() > s.Length || h.replica.jobs.load.cedes(h.client.Jitter) {
		cede := p.Cede()
		if next.Sub(v.Now) < cede*3/2 { // the lease has to be free for a moment
			cede /= 8
		}
		h.view.lead = lead{tick: next, last: true, d: cede, grab: cede}
		return time.Time{}, false
	}
	s.Reopen()
	return next, true
}

// leavesAfter reports whether the lease is released after a record in any case.
func (h *hold) leavesAfter(rec *record.Record) bool {
	p := &h.job.Policy
	next := p.NextTick(rec)
	if next.IsZero() || next.Sub(h.clock.Best()) > p.Lead() {
		return true
	}
	// Between two runs there is no beat, so the lease of a holder that dies would have to expire.
	return p.Beat > 0 || h.bounded || !h.mayActAhead() || h.stop.Err() != nil || rec.Run.Status == event.Stalled
}

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
		now := h.clock.Best()
		left := h.ahead.Sub(now)
		if asks || left <= 0 {
			if err := h.hindrance(now); err != nil || left <= 0 {
				return err
			}
		}
		if h.replica.Orders.Stale() != nil { // too old to start anything by
			// At the tick it would be too late: an armed claim would be taken back.
			ctx, cancel := context.WithTimeout(h.held, left)
			_ = h.replica.Orders.Refresh(ctx) // who starts a run asks whether they are known
			cancel()
			left = max(0, h.ahead.Sub(h.clock.Best()))
		}
		nap := ontime.Nap(left)
		if nap == left { // the last one
			h.willStart()
		}
		asks = h.nap(nap) || nap == ontime.Longest
	}
}

// hindrance returns why the tick that a lease was acquired ahead of must not be run here,
// nil if it may.
func (h *hold) hindrance(now time.Time) error {
	v := plan.View{Record: &h.before, Now: now, Since: h.rank.since, Control: h.orders()}
	p := &h.job.Policy
	switch left := h.ahead.Sub(now); {
	case h.session.Expired():
		return context.Cause(h.held)
	case h.stops(h.ahead):
		return supervise.ErrStopped
	case v.IsPaused():
		return errPaused
	case plan.Ordered(p, v) && h.stop.Err() == nil: // after a stop only the expected tick is run
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
	ahead := h.ahead
	switch {
	case h.stop.Err() == nil:
		return false
	case !tick.Equal(ahead):
		return true
	}
	p, left := &h.job.Policy, ahead.Sub(h.clock.Best())
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
	case <-h.held.Done():
	}
	return true
}

// willStart notes that the run is about to start. A call that ends some time neither
// waits for others nor lets them wait.
func (h *hold) willStart() {
	if h.started == nil && !h.bounded {
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
