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

// step does what can be done now and returns for how long there is nothing more to
// do. It never waits for a tick itself: it returns, so that the clocks and the entry
// are looked at again. A step that finds nothing to do reads the entry at most once; one
// that finds a tick due acquires the lease and runs it before it returns.
func (r *Runner) step(ctx context.Context, c *call) time.Duration {
	if r.job.EveryReplica {
		return r.stepHere(ctx, c)
	}
	begin := time.Now()
	r.source.beat()
	if err := r.replica.Degraded(); err != nil {
		// It does not read either until it takes up the job again.
		r.lookedAway()
		r.note(err)
		return restDegraded
	}
	fresh := r.view.entry == nil
	if wait := time.Until(r.view.readAt); fresh && wait > 0 && !r.hurried() {
		return wait
	}
	// An order may be newer than what this replica knows.
	if err := r.replica.Orders.Refresh(ctx); err != nil {
		return r.unusable(ctx.Err() != nil, err)
	}
	if fresh {
		if err := r.read(ctx, c.wake.Tick); err != nil {
			return r.unusable(ctx.Err() != nil, err)
		}
		// A call has to do what is due, and the lease is free now: it goes on.
		if err := r.freeUnanswered(ctx, c); err != nil && !c.bounded {
			r.reached()
			return r.standBack(err)
		}
	}
	if err := r.fromFuture(); !fresh && err != nil {
		return r.unusable(false, err)
	}
	c.short = nil
	r.forgive()
	if r.lookBefore(ctx, c, begin) && !fresh {
		fresh = true
		if err := r.read(ctx, c.wake.Tick); err != nil {
			return r.unusable(ctx.Err() != nil, err)
		}
	}
	v, action := r.next(c, fresh)
	return r.act(ctx, c, v, action, fresh)
}

// next returns what to do about the entry as it was last seen, and the view that this
// was decided from. If no replica of a younger definition answers any more, the
// definition of this replica comes into force, and the decision is made again by it.
func (r *Runner) next(c *call, fresh bool) (plan.View, plan.Action) {
	v := r.decideBy(c)
	v.LookBy = r.lookBy(v.Now)
	r.lookAhead(c, &v)
	r.view.seen.Fresh = fresh
	action := r.job.Policy.Next(v, &r.view.seen, r.clock())
	if action.What == plan.Inherit {
		r.inherit(action.Since)
		v.Since = action.Since
		action = r.job.Policy.Next(v, &r.view.seen, r.clock())
	}
	return v, action
}

// act does what next has decided. A fresh view has been read in this step.
func (r *Runner) act(ctx context.Context, c *call, v plan.View, a plan.Action, fresh bool) time.Duration {
	switch a.What {
	case plan.Yield, plan.Mark:
		if fresh {
			r.reached() // nothing else here would end the trouble
		}
		return r.yield(ctx, a)
	case plan.Tell:
		return r.tellLate(ctx, a.After)
	case plan.Expect:
		r.view.seen.Expected = a.Tick
	case plan.Acquire:
		if c.ahead = a.Tick; !c.ahead.IsZero() {
			return r.acquire(ctx, c, a)
		}
		if early := r.job.Policy.AlmostDue(v, c.wake.Tick); early > 0 {
			c.again = true
			return early
		}
		if !r.hasTime(ctx, c, &v) {
			return maxSleep
		}
		if wait := r.giveWay(c, &v); wait > 0 {
			c.again = true
			return r.readAgain(wait)
		}
		if r.job.Policy.Adopts(v) { // if one cannot be read, its ticks are waited for
			_, _ = r.view.before.made(ctx, c.wake.Tick, v.Now)
		}
		// A successful read does not end the trouble with the store: the
		// credentials may be read-only. The acquisition and the claim will show it.
		return r.seated(func() time.Duration { return r.acquire(ctx, c, a) })
	}
	r.denial.gaveWay = false
	a = r.follow(a)
	wait := r.waitFor(c, a)
	if fresh && !r.triesAgain(v) && !r.waitsInVain() {
		r.reached()
	}
	if fresh && r.denial.unproved && !c.bounded {
		return r.tryToProve(ctx, v, a.What, wait)
	}
	if a.What == plan.Answer {
		return r.answer(ctx)
	}
	return wait
}

// waitFor returns how long this replica waits, and notes why it does: a lease without
// a claim that lasts is trouble, the run of another replica is not.
func (r *Runner) waitFor(c *call, a plan.Action) time.Duration {
	readsAgain := a.What == plan.Wait && a.Read && a.After <= 0 // then it is decided what to do
	if r.waitsInVain() && a.What != plan.Await && !readsAgain {
		r.noteUnread(nil)
	}
	switch a.What {
	case plan.Blocked:
		r.notice(true, r.occupied())
		return r.wait(a)
	case plan.Queue:
		c.again, c.short = true, newHeldError(&r.view.rec, r.now())
		r.note(nil)
		return r.wait(a)
	case plan.Await:
		return r.await(a)
	case plan.Follow:
		if r.leftToExpire() { // no replica runs the job, so the call waits
			c.again, c.short = true, errToExpire
		} else {
			c.holder = r.view.rec.Run.Replica
		}
	case plan.Wait:
		c.again = c.again || a.Read // a call of RunDue reads the entry now: the next call may come much later
	}
	r.note(nil)
	r.losses.Reset()
	return r.wait(a)
}

// acquire acquires the lease of an entry that was seen free, or whose holder is silent, with the ETag that
// the decision was made from, and does what is due under the lease. If the entry has
// changed since, the store refuses the lease and the entry is read again. The order
// of the checks matters: a record with the largest token must not cost a lease.
func (r *Runner) acquire(ctx context.Context, c *call, a plan.Action) time.Duration {
	if r.job.Group != nil && c.slot.held == nil {
		return r.acquireInGroup(ctx, c, a)
	}
	if err := plan.Exhausted(&r.view.rec); err != nil {
		return r.unusable(ctx.Err() != nil, &recordError{err})
	}
	etag := r.view.entry.ETag
	r.notice(true, r.contradiction.of(etag))
	done := r.replica.reads.Pass(ctx)
	if a.Break && !r.breakSilent(ctx, etag) {
		done()
		r.lookAnew()
		return r.readAgain(r.losses.Next())
	}
	s, err := lease.Hold(ctx, r.client, etag, &r.view.rec, a.Lease, r.tellTrouble, r.emitOfRun)
	done()
	// It is not known whether the lease is ours. Hold has tried to release it;
	// else the first read that is answered decides; see freeUnanswered.
	if err != nil && !lease.Definite(err) {
		r.lookAnew()
		r.denial.doubt()
		r.denial.tried = c.ahead
		r.denial.left = unanswered{session: s, err: fmt.Errorf("%w: %w", errAcquisition, err)}
		return r.unusable(ctx.Err() != nil, err)
	}
	if err != nil {
		r.reached()
		r.lookAnew()
		// Another replica was first. By firstLook a short run is over, so the loser
		// reads the entry once for this tick. If no replica was first, because the
		// store does not free an expired lease at once, the reads become rarer.
		r.detail("another replica was first", err)
		if errors.Is(err, store.ErrHeld) { // after another refusal the lease may be free again
			c.take.lost()
		}
		if !c.ahead.IsZero() {
			return r.raceLost(c.ahead)
		}
		r.contradiction.refuse(etag, err, r.job.Policy.OccupiedAfter(&r.view.rec))
		trouble := r.contradiction.of(etag)
		r.notice(true, trouble)
		c.again = trouble == nil // a call must end, and this trouble does not end by itself
		if c.take != nil {       // its caller waits
			return r.readAgain(r.losses.Next())
		}
		return r.readAgain(firstLook + r.losses.Next())
	}
	r.losses.Reset()
	r.contradiction = contradiction{}
	r.note(nil)
	if !r.now().Before(c.ahead) { // the others looked before the tick, and do not count on this replica
		c.ahead = time.Time{}
	}
	return underLease(ctx, r, c, s)
}

// leftToExpire reports whether the entry was last seen under a lease that this process has left to expire.
func (r *Runner) leftToExpire() bool {
	left := r.source.state.left.Load()
	return left != nil && left.etag == r.view.etag && r.client.Clock.Elapsed() < left.until
}

// clock returns what decisions need to know of the service's clock.
func (r *Runner) clock() plan.Clock {
	low, _, ok := r.client.Clock.Now()
	if !ok {
		low = time.Time{}
	}
	return plan.Clock{Low: low, Drift: lease.Drift}
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
func (r *Runner) hasTime(ctx context.Context, c *call, v *plan.View) bool {
	err := r.fits(ctx, c)
	if err == nil {
		return true
	}
	if next, _ := r.job.Policy.Claim(*v); next.Run && store.BackfillOf(next.Record.Run.Request) == 0 {
		c.short = err
	}
	v.Claims = plan.NoRun
	_, todo := r.job.Policy.Claim(*v)
	return todo
}

// stillFits is hasTime after a hold-off, which may have taken most of what was left of
// the call.
func (h *hold) stillFits(v *plan.View) bool {
	if h.call.request != "" {
		return h.fits(h.ctx, h.call) == nil
	}
	v.Now = h.now()
	return h.hasTime(h.ctx, h.call, v)
}

// fits returns why this call of RunDue or RunNow must not start a run: the job's
// Timeout is longer than what the call has left, so the platform could end the process
// in the middle of the run. Loop has no such limit.
func (r *Runner) fits(ctx context.Context, c *call) error {
	deadline, limited := ctx.Deadline()
	timeout := r.job.Task.Timeout
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
