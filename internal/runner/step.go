package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A driver steps through a job for a call. It belongs to the goroutine of the runner.
type driver struct {
	*Runner
	*call
	ctx context.Context
}

// step does what can be done now and returns for how long there is nothing more to
// do. It never waits for a tick itself: it returns, so that the clocks and the entry
// are looked at again. A step that finds nothing to do reads the entry at most once; one
// that finds a tick due acquires the lease and runs it before it returns.
func (d *driver) step() time.Duration {
	if d.job.EveryReplica {
		return d.here.step(d.ctx, d.call)
	}
	begin := time.Now()
	d.source.beat()
	if err := d.replica.Degraded(); err != nil {
		// It does not read either until it takes up the job again.
		d.lookedAway()
		d.note(err)
		return restDegraded
	}
	fresh := d.view.entry == nil
	if wait := time.Until(d.view.readAt); fresh && wait > 0 && !d.hurried() {
		return wait
	}
	// An order may be newer than what this replica knows.
	if err := d.replica.Orders.Refresh(d.ctx); err != nil {
		return d.unusable(err)
	}
	if fresh {
		if err := d.read(d.ctx, d.wake.Tick); err != nil {
			return d.unusable(err)
		}
		// A call has to do what is due, and the lease is free now: it goes on.
		if err := d.freeUnanswered(); err != nil && !d.bounded {
			d.reached()
			return d.standBack(err)
		}
	}
	if !fresh {
		if err := d.fromFuture(); err != nil {
			return d.unusable(err)
		}
	}
	d.short = nil
	d.forgive()
	if d.lookBefore(begin) && !fresh {
		fresh = true
		if err := d.read(d.ctx, d.wake.Tick); err != nil {
			return d.unusable(err)
		}
	}
	v, action := d.next(fresh)
	return d.act(v, action, fresh)
}

// next returns what to do about the entry as it was last seen, and the view that this
// was decided from. If no replica of a younger definition answers any more, the
// definition of this replica comes into force, and the decision is made again by it.
func (d *driver) next(fresh bool) (plan.View, plan.Action) {
	v := d.decideBy()
	v.LookBy = d.lookBy(v.Now)
	d.lookAhead(&v)
	d.view.seen.Fresh = fresh
	low, _, ok := d.clock.Now()
	if !ok {
		low = time.Time{}
	}
	action := d.job.Policy.Next(v, &d.view.seen, low)
	if action.What == plan.Inherit {
		d.inherit(action.Since)
		v.Since = action.Since
		action = d.job.Policy.Next(v, &d.view.seen, low)
	}
	return v, action
}

// act does what next has decided. A fresh view has been read in this step.
func (d *driver) act(v plan.View, a plan.Action, fresh bool) time.Duration {
	switch a.What {
	case plan.Yield, plan.Mark:
		if fresh {
			d.reached() // nothing else here would end the trouble
		}
		return d.yield(a)
	case plan.Tell:
		return d.tellLate(a.After)
	case plan.Expect:
		d.view.seen.Expected = a.Tick
	case plan.Acquire:
		if d.ahead = a.Tick; !d.ahead.IsZero() {
			return d.acquire(a)
		}
		if early := d.job.Policy.AlmostDue(v, d.wake.Tick); early > 0 {
			d.again = true
			return early
		}
		if !d.hasTime(&v) {
			return maxSleep
		}
		if wait := d.giveWay(&v); wait > 0 {
			d.again = true
			return d.readAgain(wait)
		}
		if d.job.Policy.Adopts(v) { // if one cannot be read, its ticks are waited for
			_, _ = d.view.before.made(d.ctx, d.wake.Tick, v.Now)
		}
		// A successful read does not end the trouble with the store: the
		// credentials may be read-only. The acquisition and the claim will show it.
		return d.seated(func() time.Duration { return d.acquire(a) })
	}
	d.denial.gaveWay = false
	a = d.follow(a)
	wait := d.waitFor(a)
	if fresh && !d.triesAgain(v) && !d.waitsInVain() {
		d.reached()
	}
	if fresh && d.denial.unproved && !d.bounded {
		return d.tryToProve(v, a.What, wait)
	}
	if a.What == plan.Answer {
		return d.answer()
	}
	return wait
}

// waitFor returns how long this replica waits, and notes why it does: a lease without
// a claim that lasts is trouble, the run of another replica is not.
func (d *driver) waitFor(a plan.Action) time.Duration {
	readsAgain := a.What == plan.Wait && a.Read && a.After <= 0 // then it is decided what to do
	if d.waitsInVain() && a.What != plan.Await && !readsAgain {
		d.noteUnread(nil)
	}
	switch a.What {
	case plan.Blocked:
		d.notice(true, d.occupied())
		return d.wait(a)
	case plan.Queue:
		d.again, d.short = true, newHeldError(&d.view.rec, d.clock.Best())
		d.note(nil)
		return d.wait(a)
	case plan.Await:
		return d.await(a)
	case plan.Follow:
		if d.leftToExpire() { // no replica runs the job, so the call waits
			d.again, d.short = true, errToExpire
		} else {
			d.holder = d.view.rec.Run.Replica
		}
	case plan.Wait:
		d.again = d.again || a.Read // a call of RunDue reads the entry now: the next call may come much later
	}
	d.note(nil)
	d.losses.Reset()
	return d.wait(a)
}

// acquire acquires the lease of an entry that was seen free, or whose holder is silent, with the ETag that
// the decision was made from, and does what is due under the lease. If the entry has
// changed since, the store refuses the lease and the entry is read again. The order
// of the checks matters: a record with the largest token must not cost a lease.
func (d *driver) acquire(a plan.Action) time.Duration {
	if d.job.Group != nil && d.slot.held == nil {
		return d.acquireInGroup(a)
	}
	if err := plan.Exhausted(&d.view.rec); err != nil {
		return d.unusable(&recordError{err})
	}
	etag := d.view.entry.ETag
	d.notice(true, d.contradiction.of(etag))
	done := d.replica.reads.Pass(d.ctx)
	if a.Break && !d.breakSilent(d.ctx, etag) {
		done()
		d.lookAnew()
		return d.readAgain(d.losses.Next())
	}
	s, err := lease.Hold(d.ctx, d.client, etag, &d.view.rec, a.Lease, d.tellTrouble, d.emitOfRun)
	done()
	// It is not known whether the lease is ours. Hold has tried to release it;
	// else the first read that is answered decides; see freeUnanswered.
	if err != nil && !lease.Definite(err) {
		d.lookAnew()
		d.denial.doubt()
		d.denial.tried = d.ahead
		d.denial.left = unanswered{session: s, err: fmt.Errorf("%w: %w", errAcquisition, err)}
		return d.unusable(err)
	}
	if err != nil {
		d.reached()
		d.lookAnew()
		// Another replica was first. By firstLook a short run is over, so the loser
		// reads the entry once for this tick. If no replica was first, because the
		// store does not free an expired lease at once, the reads become rarer.
		d.detail("another replica was first", err)
		if errors.Is(err, store.ErrHeld) { // after another refusal the lease may be free again
			d.take.lost()
		}
		if !d.ahead.IsZero() {
			return d.raceLost(d.ahead)
		}
		d.contradiction.refuse(etag, err, d.job.Policy.OccupiedAfter(&d.view.rec))
		trouble := d.contradiction.of(etag)
		d.notice(true, trouble)
		d.again = trouble == nil // a call must end, and this trouble does not end by itself
		if d.take != nil {       // its caller waits
			return d.readAgain(d.losses.Next())
		}
		return d.readAgain(firstLook + d.losses.Next())
	}
	d.losses.Reset()
	d.contradiction = contradiction{}
	d.note(nil)
	if !d.clock.Best().Before(d.ahead) { // the others looked before the tick, and do not count on this replica
		d.ahead = time.Time{}
	}
	return underLease(d, s)
}

// leftToExpire reports whether the entry was last seen under a lease that this process has left to expire.
func (r *Runner) leftToExpire() bool {
	left := r.source.state.left.Load()
	return left != nil && r.clock.Elapsed() < left.until && (left.session.ETag() == r.view.etag || left.session.Sent(r.view.rec.Writer))
}

// occupied returns why it is no use to wait for the lease that was seen last, nil if
// it is of use. A lease without a claim is normal for a moment: its holder is about to
// claim. If it lasts, the holder is no replica, or a replica that cannot write.
func (r *Runner) occupied() error {
	r.view.seen.At = time.Now()
	if !r.job.Policy.Occupied(&r.view.rec, &r.view.seen) {
		return nil
	}
	if r.denial.err != nil { // this replica could not release the lease, or its holder is another replica whose writes fail
		return r.denial.err
	}
	return &occupiedError{r.job.Name, r.view.seen.Occupation.Date}
}

// hasTime reports whether this call has time for what is due. If it has too little for
// a run, it still settles the ticks that need no run; v then says so.
func (d *driver) hasTime(v *plan.View) bool {
	err := d.fits(d.ctx, d.job.Task.Timeout)
	if err == nil {
		return true
	}
	if next, _ := d.job.Policy.Claim(*v); next.Run && store.BackfillOf(next.Record.Run.Request) == 0 {
		d.short = err
	}
	v.Claims = plan.NoRun
	_, todo := d.job.Policy.Claim(*v)
	return todo
}

// stillFits is hasTime after a hold-off, which may have taken most of what was left of
// the call.
func (h *hold) stillFits(v *plan.View) bool {
	if h.request != "" {
		return h.fits(h.ctx, h.job.Task.Timeout) == nil
	}
	v.Now = h.clock.Best()
	return h.hasTime(v)
}

// fits returns why this call of RunDue or RunNow must not start a run: the job's
// time-out is longer than what the call has left, so the platform could end the process
// in the middle of the run. Loop has no such limit.
func (c *call) fits(ctx context.Context, timeout time.Duration) error {
	deadline, limited := ctx.Deadline()
	if !c.bounded || !limited || timeout == 0 {
		return nil
	}
	if left := time.Until(deadline); left < timeout {
		return fmt.Errorf("not started: it may take %s, and this call ends in %s", timeout, left.Round(time.Second))
	}
	return nil
}

// breakSilent ends the lease of a holder that has sent no beat for so long that it trusts the
// lease no more. It returns false if the holder has, meanwhile. If the answer is lost it sends
// the call once more. Then the acquisition shows whether the lease has ended: like the call it
// names the ETag, and so does the claim after it. One of the three conditions is enough.
func (r *Runner) breakSilent(ctx context.Context, etag string) bool {
	err := r.breakOnce(ctx, etag, r.client.Haste(&r.view.rec))
	if err != nil && !lease.Definite(err) {
		err = r.breakOnce(ctx, etag, r.client.CallTimeout())
	}
	if errors.Is(err, store.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
		r.detail("the holder that seemed dead has written", err)
		return false
	}
	return true
}

func (r *Runner) breakOnce(ctx context.Context, etag string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.client.Store.(store.ConditionalBreaker).BreakUnchanged(ctx, r.client.Name, etag)
}

// lookAnew has this replica see the last beat of a run for its whole length once more, before it
// breaks another lease: an acquisition does not change the ETag, so two replicas could break
// each other's leases forever.
func (r *Runner) lookAnew() {
	if r.view.rec.Beats() > 0 {
		r.view.seen.LookedAway()
	}
}
