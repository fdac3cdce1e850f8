package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// Each calls f for every runner, at the same time, and returns when all calls have
// returned.
func Each(runners []*Runner, f func(*Runner)) {
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(func() { f(r) })
	}
	all.Wait()
}

// Loop steps through the jobs of the runners, each when it says that there is something to do,
// until ctx ends. Then it returns as soon as the steps that are under way have: a run keeps its
// Grace. A job that waits has no goroutine and no timer of its own.
//
// A Runner belongs to one goroutine, so Loop waits for a call of RunDue to end before it steps
// through that job.
func Loop(ctx context.Context, runners []*Runner) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	agenda := ontime.NewAgenda()
	for _, r := range runners {
		select {
		case r.turn.drive <- struct{}{}:
			join(ctx, r, agenda)
		default:
			waiting.Go(func() {
				select {
				case r.turn.drive <- struct{}{}:
					join(ctx, r, agenda)
				case <-ctx.Done():
				}
			})
		}
	}
	agenda.Run(ctx)
}

// join has the agenda step through a job. The caller has taken the turn.
func join(ctx context.Context, r *Runner, agenda *ontime.Agenda) {
	begun := false
	r.alarm.Ring = func() {
		if !begun {
			begun = true
			if r.job.EveryReplica {
				r.here.settled = r.clock.Wall()   // a replica that starts has no older tick due, even if it has run before
				_ = r.replica.Orders.Refresh(ctx) // one try: the job may be paused
			}
			r.source.setLooping(true)
		}
		for ctx.Err() == nil {
			step := driver{r, &call{}, ctx}
			// Timers stand still while a machine is suspended, so no sleep is long.
			if d := min(step.step(), maxSleep); d > 0 && agenda.Set(&r.alarm.Alarm, d) {
				return
			}
		}
		r.source.setLooping(false)
		<-r.turn.drive
	}
	if !agenda.Set(&r.alarm.Alarm, 0) {
		<-r.turn.drive
	}
}

// Watch has what waits for a change look for it at once when the store reports one, until ctx ends.
func Watch(ctx context.Context, r *Replica, runners []*Runner) {
	w, ok := r.Store.(store.Watcher)
	if !ok {
		return
	}
	byName := map[string]*Runner{}
	for _, one := range runners {
		byName[one.client.Name] = one
	}
	// After an error reads come as without a Watcher, and doctor says why.
	_ = w.Watch(ctx, r.App, func(name string) {
		if name == "" || name == record.ControlName(r.App) {
			r.Orders.Hint()
		}
		if one := byName[name]; one != nil {
			one.alarm.hint()
		} else if name == "" {
			for _, one := range runners {
				one.alarm.hint()
			}
		}
	})
}

const (
	// hintPace is the least time between two reads of an entry that hints have caused.
	hintPace = 250 * time.Millisecond

	// hintJitter keeps replicas that get the same hint from racing for the lease.
	hintJitter = 50 * time.Millisecond
)

// An alarm has Loop step through a job when it rings.
type alarm struct {
	ontime.Alarm
	hinted atomic.Bool // since the last step
	last   time.Time   // when a read was due that a hint has caused
	follow []func()    // has those that follow the job look
}

// hint has Loop read the entry soon if it is to be read again, and that of those which follow the job. An entry that is not to
// be read again is not waited for. Any goroutine may call it.
func (a *alarm) hint() {
	a.hinted.Store(true)
	a.Hurry()
	for _, look := range a.follow {
		look()
	}
}

// sooner returns when the entry is to be read that is to be read at an instant: earlier, if there was a hint.
func (a *alarm) sooner(readAt time.Time, jitter *lease.Jitter) time.Time {
	if a.hinted.Swap(false) {
		at := instant.Later(time.Now(), a.last.Add(hintPace)).Add(jitter.UpTo(hintJitter))
		if at.Before(readAt) {
			a.last = at
			return at
		}
	}
	return readAt
}

// A turn says who drives a runner: Loop, or one call of RunDue.
type turn struct {
	drive chan struct{} // has room for the driver
	call  chan struct{} // has room for the call that drives
	next  chan struct{} // has room for one call that waits for that
}

// take has a call drive the runner until done. It returns false if Loop does, or another call. With
// waits it waits for the end of that call, unless another one waits already, or ctx ends.
func (t *turn) take(ctx context.Context, waits bool) (done func(), ok bool) {
	select {
	case t.call <- struct{}{}:
	default:
		if !waits || !t.follow(ctx) {
			return nil, false
		}
	}
	select {
	case t.drive <- struct{}{}:
		return func() { <-t.drive; <-t.call }, true
	default: // Loop drives it
		<-t.call
		return nil, false
	}
}

// follow waits for the end of the call that drives the runner.
func (t *turn) follow(ctx context.Context) bool {
	select {
	case t.next <- struct{}{}:
		defer func() { <-t.next }()
	default:
		return false
	}
	select {
	case t.call <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// A Report says what one call of RunDue did for one job.
type Report struct {
	Job     string
	Ran     []event.Outcome // what was run here, in order
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
func RunDue(ctx context.Context, r *Runner, began control.Moment, wake Wake) Report {
	done, ok := r.turn.take(ctx, r.view.before.hasNews())
	if !ok {
		return busyReport(ctx, r)
	}
	defer done()
	// If the wall clock has counted more time than the monotonic clock since the entry was last read or written here, a platform
	// has frozen the process between two calls, as the monotonic clock then stands still. So what was seen "since" some time
	// was not seen all that time. A wall clock that was set looks the same, and costs one more read.
	if r.clock.Wall().Sub(r.view.seenAt)-time.Since(r.view.seen.LookedAt) > time.Second {
		r.lookedAway()
	}
	d := driver{r, &call{wake: wakeUp{wake, r.clock.Wall(), time.Now()}, claims: plan.NoBackfill, bounded: true}, ctx}
	if r.job.EveryReplica {
		d.wake.Tick, _ = r.here.named(wake, d.wake.now)
		wake = d.wake.Wake
	}
	r.replica.Orders.Read(ctx, began) // once for all jobs of a call
	if !r.job.EveryReplica && r.replica.Orders.Stale() != nil {
		// Without them the call can do nothing for the job.
		again := r.replica.Orders.Now()
		lease.Sleep(ctx, control.Again)
		r.replica.Orders.Read(ctx, again)
	}
	r.view.readAt = time.Time{}
	more := true
	for more && ctx.Err() == nil {
		d.again = false
		// The call goes on if the step asked for it, if the tick of the wake-up is
		// about to be due, or if ticks are left that this call has due.
		wait := d.step()
		if early := d.early(wake); !d.again && early > 0 {
			more, wait = true, early
		} else {
			more = d.again || wait == 0 && d.owed()
		}
		if more {
			lease.Sleep(ctx, wait)
		}
	}
	return d.report(more)
}

// report returns what a call did. more says that it has ended before it has done what it had to.
func (d *driver) report(more bool) Report {
	report := Report{Job: d.job.Name, Ran: d.ran, Replica: d.holder, Next: d.nextDue(),
		Err: errors.Join(d.source.state.lastErr(), d.short, d.undone), Awaits: d.awaits()}
	if more {
		report.Err = errors.Join(report.Err, context.Cause(d.ctx))
	}
	return report
}

// nextDue returns when the next tick is due, as far as this replica knows. If another
// definition is in force, the record says so; before the first read only the schedule
// does.
func (d *driver) nextDue() time.Time {
	p := &d.job.Policy
	switch {
	case d.job.EveryReplica:
		return p.Ticks.Next(d.clock.Wall())
	case !d.view.known:
		return p.Ticks.Next(d.clock.Best())
	case p.Outdated(d.decideBy()):
		return plan.Due(&d.view.rec)
	}
	if d.ordered(&d.view.rec).IsPaused() {
		return p.Ticks.Next(d.clock.Best())
	}
	return p.NextTick(&d.view.rec)
}

// busyReport is the report of a call that finds this runner driven by another one. A tick that waits
// for the jobs before this one is due before any other. The other call may leave it.
func busyReport(ctx context.Context, r *Runner) Report {
	report := Report{Job: r.job.Name, Replica: r.replica.Name, Next: r.job.Policy.Ticks.Next(r.clock.Best())}
	if r.job.EveryReplica {
		report.Err = r.source.state.lastErr() // of a run that goes on though its context has ended
	}
	if b := r.view.before; b != nil {
		come, facts := r.job.Policy.Ticks.Last(r.clock.Best()), b.jobs.get()
		if facts.by.Before(come) {
			report.Next, report.Awaits = come, facts.undecided(come)
		} else if b.hasNews() && ctx.Err() != nil { // it has waited for the other call
			report.Next, report.Err = come, context.Cause(ctx)
		}
	}
	return report
}

// owed reports whether ticks are left for this call, or runs that were ordered. A tick that has waited for the run of the
// call is one of them. One that waits for that tick is left to the next call, for the same reason.
func (d *driver) owed() bool {
	p := &d.job.Policy
	if d.job.EveryReplica {
		return false
	}
	if plan.Ordered(p, d.ordered(&d.view.rec)) {
		return true
	}
	until := d.owes()
	if p.Queues() && d.isFirst() {
		until = instant.Later(until, d.clock.Best())
	}
	next := p.NextTick(&d.view.rec)
	return !next.IsZero() && !next.After(until)
}

// early returns how long it takes until the tick of the wake-up is due, zero if it is
// due or over. A platform's timer may fire a moment early; its tick must not be left to
// the next timer.
func (d *driver) early(wake Wake) time.Duration {
	if d.job.EveryReplica {
		return d.here.early(wake)
	}
	if wake.Tick.IsZero() || !d.view.known {
		return 0
	}
	return d.job.Policy.Early(d.decideBy(), wake.Tick)
}

// owes returns up to when the ticks are due for a call of RunDue, zero for any other call: those that were
// due when it began, and those up to the tick of its wake-up. Later ones wait for the next call. Else a
// job whose run takes longer than its period would keep the call going forever.
func (d *driver) owes() time.Time {
	if d.wake.begin.IsZero() {
		return time.Time{}
	}
	now := d.clock.Best()
	last := now.Add(-time.Since(d.wake.begin))
	if d.wake.Tick.Sub(now) <= plan.WakeSpan {
		last = instant.Later(last, instant.Earlier(d.wake.Tick, now))
	}
	return last
}

// leaveTo notes the first tick of a follower that the call leaves to others. It runs those that are
// decided as far as it knows, up to the last tick it has due.
func (d *driver) leaveTo() {
	b, left := d.view.before, d.job.Policy.Unclaimed(&d.view.rec)
	if does := instant.Earlier(b.jobs.get().by, d.owes()); !left.IsZero() && !left.After(does) {
		left = d.job.Policy.Ticks.Next(does)
	}
	b.left.Store(&left)
}

// RunBackfilled runs ticks of a backfill while a call that began at begin has time for them, and returns
// what it did. A tick of the job that comes due meanwhile is run first; then it returns, and ticked is
// true, since jobs that follow this one may be due now. If Loop or another call is driving this
// runner, it does nothing.
func RunBackfilled(ctx context.Context, r *Runner, begin time.Time) (report Report, ticked bool) {
	done, ok := r.turn.take(ctx, false)
	if !ok {
		return report, false
	}
	defer done()
	d := driver{r, &call{bounded: true}, ctx}
	if !d.goesOn(begin) {
		return report, false
	}
	r.view.readAt = time.Time{}
	more := true
	for more && !ticked && ctx.Err() == nil {
		d.again = false
		wait := d.step()
		ticked = slices.ContainsFunc(d.ran, func(f event.Outcome) bool { return f.Request == "" })
		if more = d.again || wait == 0 && d.goesOn(begin); more && !ticked {
			lease.Sleep(ctx, wait)
		}
	}
	return d.report(more), ticked
}

// goesOn reports whether a call has time for the next tick of a backfill. It is not known how long a run
// takes, unless the job has a Timeout, so half of the time of a call that ends is enough.
func (d *driver) goesOn(begin time.Time) bool {
	end, ends := d.ctx.Deadline()
	if ends && d.job.Task.Timeout == 0 && time.Since(begin) > time.Until(end) {
		return false
	}
	return !d.job.EveryReplica && d.job.Policy.Backfills(d.decideBy())
}
