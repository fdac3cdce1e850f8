package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A Report says what one call of RunDue did for one job.
type Report struct {
	Job     string
	Ran     []store.Outcome // what was run here, in order
	Replica string          // the replica that runs the job now instead; this one, if another call does
	Next    time.Time       // the next tick that is not settled; zero: none ever
	Err     error           // why the job could not be checked, or why something claimed has no outcome by this call
	Awaits  string          // the jobs whose outcome Next waits for, once it has come; empty: none
}

// RunDue steps until nothing that was due is left to do, and returns what it did. It leaves the ticks of a
// backfill to RunBackfilled: a follower of the job is due before them. If
// another call, or Loop, is driving this runner, it does nothing: that one does what is
// due. But that call may not know of a tick which the jobs before this one have decided here, or may leave
// it to others, since it came due after its begin: then this one follows it. A pause that an earlier call has asked for does not
// bind this one.
//
// The orders of operators are read unless they were since began, the begin of the caller's call.
func (r *Runner) RunDue(ctx context.Context, began control.Moment, wake Wake) Report {
	done, ok := r.turn.take(ctx, r.view.before.hasNews())
	if !ok {
		return r.busyReport(ctx)
	}
	defer done()
	// The platform may have frozen the process since the last call. Then what was
	// seen "since" some time was not seen all that time.
	if r.frozen() {
		r.lookedAway()
	}
	c, more := &call{wake: wakeUp{wake, r.replica.Wall(), time.Now()}, claims: plan.NoBackfill, bounded: true}, true
	if r.job.EveryReplica {
		c.wake.Tick, _ = r.here.named(wake, c.wake.now)
		wake = c.wake.Wake
	}
	r.readOrders(ctx, began)
	r.view.readAt = time.Time{}
	for more && ctx.Err() == nil {
		c.again = false
		// The call goes on if the step asked for it, if the tick of the wake-up is
		// about to be due, or if ticks are left that this call has due.
		wait := r.step(ctx, c)
		if early := r.early(wake); !c.again && early > 0 {
			more, wait = true, early
		} else {
			more = c.again || wait == 0 && (r.owed(c) || r.owesQueued(c))
		}
		if more {
			lease.Sleep(ctx, wait)
		}
	}
	return r.report(ctx, c, more)
}

// report returns what a call did. more says that it has ended before it has done what it had to.
func (r *Runner) report(ctx context.Context, c *call, more bool) Report {
	report := Report{Job: r.job.Name, Ran: c.ran, Replica: c.holder, Next: r.nextDue(),
		Err: errors.Join(r.source.state.lastErr(), c.short, c.undone), Awaits: r.awaits()}
	if more {
		report.Err = errors.Join(report.Err, context.Cause(ctx))
	}
	return report
}

// readOrders reads the orders of operators once for all jobs of a call. If that fails it is
// tried once more: without them the call can do nothing for a job that has a lease.
func (r *Runner) readOrders(ctx context.Context, began control.Moment) {
	r.replica.Orders.Read(ctx, began)
	if r.job.EveryReplica || r.replica.Orders.Stale() == nil {
		return
	}
	again := r.replica.Orders.Now()
	lease.Sleep(ctx, control.Again)
	r.replica.Orders.Read(ctx, again)
}

// nextDue returns when the next tick is due, as far as this replica knows. If another
// definition is in force, the record says so; before the first read only the schedule
// does.
func (r *Runner) nextDue() time.Time {
	p := &r.job.Policy
	switch {
	case r.job.EveryReplica:
		return p.Ticks.Next(r.replica.Wall())
	case !r.view.known:
		return p.Ticks.Next(r.now())
	case p.Outdated(r.decideBy(&call{})):
		return plan.Due(&r.view.rec)
	}
	if r.ordered(&r.view.rec).IsPaused() {
		return p.Ticks.Next(r.now())
	}
	return p.NextTick(&r.view.rec)
}

// busyReport is the report of a call that finds this runner driven by another one. A tick that waits
// for the jobs before this one is due before any other. The other call may leave it.
func (r *Runner) busyReport(ctx context.Context) Report {
	report := Report{Job: r.job.Name, Replica: r.replica.Name, Next: r.job.Policy.Ticks.Next(r.now())}
	if r.job.EveryReplica {
		report.Err = r.source.state.lastErr() // of a run that goes on though its context has ended
	}
	if b := r.view.before; b != nil {
		come, facts := r.job.Policy.Ticks.Last(r.now()), b.jobs.get()
		if facts.by.Before(come) {
			report.Next, report.Awaits = come, facts.undecided(come)
		} else if b.hasNews() && ctx.Err() != nil { // it has waited for the other call
			report.Next, report.Err = come, context.Cause(ctx)
		}
	}
	return report
}

// owed reports whether ticks are left for this call, or runs that were ordered.
func (r *Runner) owed(c *call) bool {
	if r.job.EveryReplica {
		return false
	}
	if r.job.Policy.Ordered(r.ordered(&r.view.rec)) {
		return true
	}
	next := r.job.Policy.NextTick(&r.view.rec)
	return !next.IsZero() && !next.After(r.owes(c))
}

// owesQueued reports whether a tick is left for this call that has waited for its run. A tick that waits for
// that tick is left to the next call, for the same reason.
func (r *Runner) owesQueued(c *call) bool {
	p := &r.job.Policy
	if r.job.EveryReplica || !p.Queues() || !c.isFirst() {
		return false
	}
	next := p.NextTick(&r.view.rec)
	return !next.IsZero() && !next.After(r.now())
}

// early returns how long it takes until the tick of the wake-up is due, zero if it is
// due or over. A platform's timer may fire a moment early; its tick must not be left to
// the next timer.
func (r *Runner) early(wake Wake) time.Duration {
	if r.job.EveryReplica {
		return r.here.early(wake)
	}
	if wake.Tick.IsZero() || !r.view.known {
		return 0
	}
	return r.job.Policy.Early(r.decideBy(&call{}), wake.Tick)
}

// owes returns up to when the ticks are due for a call of RunDue, zero for any other call: those that were
// due when it began, and those up to the tick of its wake-up. Later ones wait for the next call. Else a
// job whose run takes longer than its period would keep the call going forever.
func (r *Runner) owes(c *call) time.Time {
	if c.wake.begin.IsZero() {
		return time.Time{}
	}
	now := r.now()
	last := now.Add(-time.Since(c.wake.begin))
	if c.wake.Tick.Sub(now) <= plan.WakeSpan {
		last = instant.Later(last, instant.Earlier(c.wake.Tick, now))
	}
	return last
}

// leaveTo notes the first tick of a follower that the call leaves to others. It runs those that are
// decided as far as it knows, up to the last tick it has due.
func (r *Runner) leaveTo(c *call) {
	if b := r.view.before; b != nil {
		left := r.job.Policy.Unclaimed(&r.view.rec)
		if does := instant.Earlier(b.jobs.get().by, r.owes(c)); !left.IsZero() && !left.After(does) {
			left = r.job.Policy.Ticks.Next(does)
		}
		b.left.Store(&left)
	}
}

// RunBackfilled runs ticks of a backfill while a call that began at begin has time for them, and returns
// what it did. A tick of the job that comes due meanwhile is run first; then it returns, and ticked is
// true, since jobs that follow this one may be due now. If Loop or another call is driving this
// runner, it does nothing.
func (r *Runner) RunBackfilled(ctx context.Context, begin time.Time) (report Report, ticked bool) {
	done, ok := r.turn.take(ctx, false)
	if !ok {
		return report, false
	}
	defer done()
	c := &call{bounded: true}
	if !r.goesOn(ctx, begin) {
		return report, false
	}
	r.view.readAt = time.Time{}
	more := true
	for more && !ticked && ctx.Err() == nil {
		c.again = false
		wait := r.step(ctx, c)
		ticked = slices.ContainsFunc(c.ran, func(f store.Outcome) bool { return f.Request == "" })
		if more = c.again || wait == 0 && r.goesOn(ctx, begin); more && !ticked {
			lease.Sleep(ctx, wait)
		}
	}
	return r.report(ctx, c, more), ticked
}

// goesOn reports whether a call has time for the next tick of a backfill. It is not known how long a run
// takes, unless the job has a Timeout, so half of the time of a call that ends is enough.
func (r *Runner) goesOn(ctx context.Context, begin time.Time) bool {
	end, ends := ctx.Deadline()
	if ends && r.job.Task.Timeout == 0 && time.Since(begin) > time.Until(end) {
		return false
	}
	return !r.job.EveryReplica && r.job.Policy.Backfills(r.decideBy(&call{}))
}
