package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

const (
	maxSleep = 30 * time.Second // a look at the clock, since timers stop while a machine is suspended

	// restDegraded is how soon a replica that starts nothing new checks whether it
	// can start again.
	restDegraded = time.Second
)

// A Wake is what a platform woke the program up for.
type Wake struct {
	Jobs []string  // empty: all
	Tick time.Time // that the timer has fired for; zero: not known
}

// A wakeUp is what a call of RunDue was called for.
type wakeUp struct {
	Wake
	now   time.Time // of an EveryReplica job: the wall clock when the call began, for its first step
	begin time.Time // monotonic: when the call began; zero: this is no call of RunDue
}

// A call is what a step is made for, and what came of it. RunDue and RunNow make one
// for all their steps; Loop makes one for each, since it reports nothing.
type call struct {
	request string      // RunNow: the name of the request
	wake    wakeUp      // RunDue: what it was called for
	claims  plan.Claims // which runs it may claim
	bounded bool        // by RunNow or RunDue: the call ends some time, so a run may not have the time that it needs
	take    taking      // Take: what differs from RunNow
	slot    slot        // of the group of the job

	ahead time.Time // the tick before which the lease is acquired, or kept; zero: something is due

	again  bool            // RunDue must step once more, as this step left something unfinished that is due now
	ran    []event.Outcome // what was run here, in order
	holder string          // the other replica that runs the job now, as far as known
	claim  *unbegun        // the last one; nil: there was none
	over   bool            // it was begun, has its outcome, or was taken back
	short  error           // why what is due was not started: too little time is left, or a client has the lease and claims nothing
	undone error           // why this call claimed something and wrote no outcome for it, or could not wait until it may claim
}

// isFirst reports whether the call has run one tick, and not yet a tick that waited for that.
func (c *call) isFirst() bool { return len(c.ran) == 1 }

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

// endedBefore notes that a call which ends some time has ended before it could claim anything. The next one needs more time.
// After the loss of its lease a call goes on.
func (c *call) endedBefore(stop context.Context, what string) {
	if c.bounded && stop.Err() != nil {
		c.undone = errors.Join(c.undone, fmt.Errorf("%s, and this call ended before", what))
	}
}

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
	d.view.readAt = d.alarm.sooner(d.view.readAt, d.client.Jitter)
	if wait := time.Until(d.view.readAt); fresh && wait > 0 && !(d.job.Seat != nil && d.job.Seat.Hurried()) {
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
		if claim := d.unbegun(); claim != nil { // or it would be settled as that of a runner that died
			takeBackUnbegun(d.ctx, d, claim)
			d.again = true
			return d.readAgain(time.Second)
		}
		// A call has to do what is due, and the lease is free now: it goes on.
		if err := d.freeUnanswered(); err != nil && !d.bounded {
			d.reached()
			return d.standBack(err)
		}
	} else if err := d.fromFuture(); err != nil {
		return d.unusable(err)
	}
	d.short = nil
	if d.denial.err != nil {
		d.forgive()
	}
	if d.view.before != nil && d.lookBefore(begin) && !fresh {
		fresh = true
		if err := d.read(d.ctx, d.wake.Tick); err != nil {
			return d.unusable(err)
		}
	}
	v, action := d.next(fresh)
	return d.act(v, action, fresh)
}

// decideBy collects what plan decides by at this moment: the view, the clock, and what
// other runners of the same job in this process have seen of the entry.
func (d *driver) decideBy() plan.View {
	n := d.source.state.get()
	o := &d.view.seen
	o.At, o.RecreatedAt, o.LastLease = time.Now(), n.entry.recreated, n.entry.lease
	now := d.clock.Now()
	v := plan.View{Record: &d.view.rec, Now: now.Best, Earliest: now.Earliest, Since: d.rank.since,
		Request: d.request, Control: d.orders(), Waited: d.view.waited, Claims: d.claims}
	if d.slot.none {
		v.Claims = plan.NoRun
	}
	_, v.Break.Able = d.client.Store.(store.ConditionalBreaker)
	v.Break.ByOperator = o.Unlocked(&d.view.rec)
	if d.view.before != nil {
		v.Before = d.view.before.jobs.get().known
	}
	if d.view.entry != nil {
		v.State, v.ETag = d.view.entry.State, d.view.entry.ETag
	}
	return v
}

// next returns what to do about the entry as it was last seen, and the view that this
// was decided from. If no replica of a younger definition answers any more, the
// definition of this replica comes into force, and the decision is made again by it.
func (d *driver) next(fresh bool) (plan.View, plan.Action) {
	v := d.decideBy()
	// A job whose tick comes before a read is due is not read between its ticks.
	looked, due := d.view.seen.LookedAt, d.view.rec.Due
	if d.replica.reads.Many() && (due.IsZero() || due.Sub(v.Now) > plan.LookEvery-time.Since(looked)) {
		v.Ahead.LookBy = d.replica.reads.LookBy(looked)
	}
	d.lookAhead(&v)
	d.view.seen.Fresh = fresh
	action := plan.Next(&d.job.Policy, v, &d.view.seen)
	if action.What == plan.Inherit {
		d.emit(event.Event{Kind: event.Inherited, Former: event.Former{Since: d.view.rec.Definition.Since}, Took: time.Since(d.view.seen.UnchangedSince).Truncate(time.Minute)})
		d.rank.since, v.Since = action.Since, action.Since
		action = plan.Next(&d.job.Policy, v, &d.view.seen)
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
		if early := plan.AlmostDue(d.job.Policy.Ticks, v.Now, d.wake.Tick); early > 0 {
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
	if fresh && !d.waitsInVain() {
		// An acquisition before the next tick that got no answer is repeated at that tick. Until then a successful read does
		// not end the trouble.
		next := d.job.Policy.NextTick(v.Record)
		if triesAgain := d.denial.unproved && !next.IsZero() && next.Equal(d.denial.tried); !triesAgain {
			d.reached()
		}
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
		if err := d.toExpire(); err != nil { // no replica runs the job, so the call waits
			d.again, d.short = true, err
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
// changed since, the store refuses the lease and the entry is read again.
func (d *driver) acquire(a plan.Action) time.Duration {
	if d.job.Group != nil && d.slot.held == nil {
		return d.acquireInGroup(a)
	}
	etag := d.view.entry.ETag
	d.notice(true, d.contradiction.of(etag))
	done := d.replica.reads.Pass(d.ctx)
	if a.Break && !d.breakSilent(d.ctx, etag) {
		done()
		d.lookAnew()
		return d.readAgain(d.losses.Next())
	}
	s, underLease, err := acquired(d, a)
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
			d.take.behind = true
		}
		if !d.ahead.IsZero() {
			look, grab := d.drawLead(false, d.ahead) // it looks when all others do
			d.view.lead = lead{tick: d.ahead, d: look, grab: grab, outrun: d.ahead}
			return d.readAgain(max(d.ahead.Sub(d.clock.Best())-look, raceOver))
		}
		d.contradiction.refuse(etag, err, d.job.Policy.OccupiedAfter(&d.view.rec))
		trouble := d.contradiction.of(etag)
		d.notice(true, trouble)
		d.again = trouble == nil // a call must end, and this trouble does not end by itself
		if d.take.terms != nil { // its caller waits
			return d.readAgain(d.losses.Next())
		}
		return d.readAgain(firstLook + d.losses.Next())
	}
	d.losses.Reset()
	d.contradiction = contradiction{}
	d.note(nil)
	return underLease()
}

// toExpire returns the error of a call that finds the entry under a lease which this process has left to expire, nil if it
// is another's.
func (r *Runner) toExpire() error {
	left := r.source.state.left.Load()
	if left == nil || r.clock.Elapsed() >= left.until || left.etag != r.view.etag && !slices.Contains(left.sent, r.view.rec.Writer) {
		return nil
	}
	return &passingError{errToExpire}
}

// occupied returns why it is no use to wait for the lease that was seen last, nil if
// it is of use. A lease without a claim is normal for a moment: its holder is about to
// claim. If it lasts, the holder is no replica, or a replica that cannot write.
func (r *Runner) occupied() error {
	r.view.seen.At = time.Now()
	if !r.view.seen.Occupied(r.job.Policy.OccupiedAfter(&r.view.rec)) {
		return nil
	}
	if r.denial.err != nil { // this replica could not release the lease, or its holder is another replica whose writes fail
		return r.denial.err
	}
	return &occupiedError{r.job.Name, r.view.seen.Occupation.Date}
}

// hasTime reports whether this call has time for what is due. If it has too little for
// a run, it still settles the ticks that need no run; v then says so. For a manual run there is nothing else.
func (d *driver) hasTime(v *plan.View) bool {
	err := d.fits(d.ctx, d.job.Task.Timeout)
	if err == nil || d.request != "" {
		return err == nil
	}
	if next, _ := d.job.Policy.Claim(*v); next.Run && event.BackfillOf(next.Record.Run.Request) == 0 {
		d.short = err
	}
	v.Claims = plan.NoRun
	_, todo := d.job.Policy.Claim(*v)
	return todo
}

// breakSilent ends the lease of a holder that has sent no beat for so long that it trusts the
// lease no more. It returns false if the holder has, meanwhile. If the answer is lost it sends
// the call once more. Then the acquisition shows whether the lease has ended: like the call it
// names the ETag, and so does the claim after it. One of the three conditions is enough.
func (r *Runner) breakSilent(ctx context.Context, etag string) bool {
	try := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return r.client.Store.(store.ConditionalBreaker).BreakUnchanged(ctx, r.client.Name, etag)
	}
	err := try(r.client.Haste(&r.view.rec))
	if err != nil && !lease.Definite(err) {
		err = try(r.client.CallTimeout())
	}
	if errors.Is(err, store.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
		r.detail("the holder that seemed dead has written", err)
		return false
	}
	return true
}

// lookAnew has this replica see the last beat of a run for its whole length once more, before it
// breaks another lease: an acquisition does not change the ETag, so two replicas could break
// each other's leases forever.
func (r *Runner) lookAnew() {
	if r.view.rec.Beats() > 0 {
		r.view.seen.LookedAway()
	}
}
