package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/alarm"
)

// settleTime bounds what is done about the alarm at the end of a pass, also where the platform has asked us to stop: it
// gives some 30 s.
const settleTime = 20 * time.Second

// settling is a context for the calls that end a pass. The end of ctx does not end it, since an alarm has to be pending
// before this process goes.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleTime)
}

// SetAlarm makes sure that the app is woken up when it is wanted next.
func (a *App) SetAlarm(ctx context.Context) error { return a.alarmBy(ctx, a.Alarm.Set) }

// RenewAlarm is SetAlarm at the start of a process, when the message that is noted may be gone.
func (a *App) RenewAlarm(ctx context.Context) error { return a.alarmBy(ctx, a.Alarm.Renew) }

func (a *App) alarmBy(ctx context.Context, set func(context.Context, time.Time) error) error {
	ctx, cancel := settling(ctx)
	defer cancel()
	due, err := a.Scheduler.NextDue(ctx)
	if err != nil {
		return a.unset(err)
	}
	return a.unset(set(ctx, due))
}

// GiveBack leaves a message to another version of the program, which the platform has handed over and deletes itself. The
// queue took it at an instant; zero: the platform does not say when.
func (a *App) GiveBack(ctx context.Context, message string, inserted time.Time) error {
	ctx, cancel := settling(ctx)
	defer cancel()
	return a.Alarm.GiveBack(ctx, message, inserted)
}

// unset is the error of an alarm that may not be set. If one is pending anyway, it logs what is wrong and returns nil.
func (a *App) unset(err error) error {
	if errors.Is(err, alarm.ErrPending) {
		a.Log.Warn(format.Error(err))
		return nil
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("the alarm may not be set, so the next tick may wait for the platform's timer: %w", err)
}

// How long a pass is away from the next one: until that is due, but where it is due already and cannot be begun, such as
// one whose record cannot be read, longer each time.
const (
	leastPause = 50 * time.Millisecond // the service's clock may be a little behind
	firstPause = time.Second
	lastPause  = 15 * time.Second
)

// lookPause is how often a pass is begun at least while an earlier one waits for its runs: there may be an order.
const lookPause = 30 * time.Second

// passes are the calls of one wake-up. Each looks for all that is due, and waits for the runs that it has begun, so the next
// one does not wait for it.
type passes struct {
	app      *App
	pass     func() soloist.Report
	tick     func(after time.Time) time.Time // the next one of any job, by the schedules alone; zero: none is to come
	patience time.Duration
	enough   time.Time // from then on ticks to come are left to the next wake-up, when nothing runs; zero: never

	all     sync.WaitGroup
	running atomic.Int32
	ran     atomic.Bool
	ended   chan struct{}   // one has ended since it was received last
	runs    <-chan struct{} // a run has
	start   time.Time       // of the last one
	quiet   time.Time       // when something has run last, or the beginning

	mu     sync.Mutex
	report soloist.Report // of all that have ended
}

// Passes calls pass, which does what is due: at once, and for each tick that comes due while an earlier call goes on or within
// patience after the last run. So frequent ticks keep it going until half of ctx's time is over. Then it hands over to the
// alarm. It stops waiting when ctx ends. It returns what all calls together have reported.
func (a *App) Passes(ctx context.Context, patience time.Duration, pass func() soloist.Report) (soloist.Report, error) {
	now := time.Now()
	p := &passes{app: a, pass: pass, tick: nextTick(a.Scheduler.Jobs), patience: patience, enough: enough(ctx, a.Scheduler.Jobs), ended: make(chan struct{}, 1), quiet: now}
	runs, stop := a.ends.listen()
	defer stop()
	p.runs = runs
	release := a.Alarm.Guard(ctx, guardSpan) // as in Guarded
	err := p.run(ctx)
	release(err == nil)
	return p.report, err
}

// enough returns until when what has time for any of the jobs may wait for ticks. How long a job takes without a Timeout is
// not known: half of the time has to be enough.
func enough(ctx context.Context, jobs []soloist.Job) time.Time {
	end, ends := ctx.Deadline()
	if !ends {
		return time.Time{}
	}
	left, longest := time.Until(end), time.Duration(0)
	for i := range jobs {
		if d := jobs[i].Timeout; d <= left { // others are never begun
			longest = max(longest, d)
		}
	}
	return time.Now().Add(min(left/2, left-longest))
}

func (p *passes) run(ctx context.Context) error {
	defer p.all.Wait()
	p.begin(ctx)
	for pause := firstPause; ; {
		if ctx.Err() != nil {
			p.all.Wait() // the runs have their grace
		}
		idle := p.idle()
		due, err := p.app.nextDue(ctx)
		if err != nil {
			return p.app.unset(err)
		}
		if idle && p.over(ctx, due) {
			return p.app.handOver(ctx, due, p.app.stored(p.start))
		}
		wait, now := lookPause, p.app.Alarm.Now()
		if !due.IsZero() {
			wait, pause = between(due.Sub(now), pause)
		}
		if tick := p.tick(now); !tick.IsZero() { // due may be another job's tick, which cannot be begun
			wait = min(wait, max(tick.Sub(now), leastPause))
		}
		if !idle {
			wait = min(wait, lookPause)
		}
		if p.rest(ctx, wait) {
			p.begin(ctx)
		}
	}
}

// begin begins a pass, and gives it a moment: most of them end at once.
func (p *passes) begin(ctx context.Context) {
	p.start = time.Now()
	p.running.Add(1)
	p.all.Go(func() {
		p.add(p.pass())
		p.running.Add(-1)
		select {
		case p.ended <- struct{}{}:
		default:
		}
	})
	p.rest(ctx, firstPause)
}

// add adds what a pass has reported.
func (p *passes) add(one soloist.Report) {
	if slices.ContainsFunc(one.Jobs, func(j soloist.JobReport) bool { return len(j.Ran) > 0 }) {
		p.ran.Store(true)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = merged(p.report, one)
}

// rest waits, and reports whether to begin a pass: d is over, or a run has ended for which another tick may have
// waited. It returns early when a pass ends or ctx does.
func (p *passes) rest(ctx context.Context, d time.Duration) (begin bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for runs := p.runs; ; {
		select {
		case <-t.C:
			return true
		case <-runs:
			runs = nil
			t.Reset(min(d, leastPause)) // the pass that had it goes on first
		case <-p.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// idle reports whether all passes have ended. A pass that ends after this call ends the next rest.
func (p *passes) idle() bool {
	select {
	case <-p.ended:
	default:
	}
	return p.running.Load() == 0
}

// over reports whether the rest is left to the alarm. Nothing runs now.
func (p *passes) over(ctx context.Context, due time.Time) bool {
	if now := time.Now(); p.ran.Swap(false) && (p.enough.IsZero() || now.Before(p.enough)) {
		p.quiet = now
	}
	quiet := p.app.stored(p.quiet)
	return ctx.Err() != nil || due.IsZero() || due.Sub(quiet) > p.patience || p.app.Alarm.Now().Sub(quiet) > p.patience
}

// stored returns the store's time at an instant. It is known from the first answer of the store on, so at the beginning of a
// pass it may not be yet.
func (a *App) stored(at time.Time) time.Time { return a.Alarm.Now().Add(-time.Since(at)) }

// between returns how long to wait for a tick that is due after until, and the next pause. Only a tick that was due before
// has waits grow: ticks a second apart are not to be late by more and more.
func between(until, pause time.Duration) (wait, next time.Duration) {
	if until <= 0 {
		return pause, min(2*pause, lastPause)
	}
	return max(until, leastPause), firstPause
}

func (a *App) nextDue(ctx context.Context) (time.Time, error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	return a.Scheduler.NextDue(ctx)
}

// handOver leaves the next tick to the alarm, and says so.
func (a *App) handOver(ctx context.Context, due, began time.Time) error {
	ctx, cancel := settling(ctx)
	defer cancel()
	err := a.unset(a.Alarm.HandOver(ctx, due, began))
	if err == nil && due.IsZero() {
		a.Log.Info("no tick is to come, so no alarm is set: an order wakes the app up, or the platform's timer")
	} else if err == nil {
		a.Log.Info("the alarm is set", "tick", due.UTC(), "lead", a.Settings.AlarmLead)
	}
	return err
}

// HandOver leaves the next tick to the alarm, unless one is due within patience: then it only returns when.
func (a *App) HandOver(ctx context.Context, patience time.Duration) (due time.Time, done bool, err error) {
	began := a.Alarm.Now()
	if due, err = a.nextDue(ctx); err != nil {
		return due, false, a.unset(err)
	}
	if !due.IsZero() && due.Sub(began) <= patience {
		return due, false, nil
	}
	err = a.handOver(ctx, due, began)
	return due, err == nil, err
}

// merged is the report of two passes, of which the second has ended last: all that they ran, and of each job what the one
// says of the rest that knows of a later tick. The second may have begun first, or looked after no job at all.
func merged(first, second soloist.Report) soloist.Report {
	if len(second.Jobs) == 0 {
		return first
	}
	second.Next = time.Time{}
	for i := range second.Jobs {
		s := &second.Jobs[i]
		n := slices.IndexFunc(first.Jobs, func(j soloist.JobReport) bool { return j.Job == s.Job })
		if n >= 0 {
			f := first.Jobs[n]
			ran := append(slices.Clip(f.Ran), s.Ran...)
			if !s.Next.IsZero() && (f.Next.IsZero() || f.Next.After(s.Next)) { // zero is never
				*s = f
			}
			s.Ran = ran
		}
		if !s.Next.IsZero() && s.Awaits == "" && (second.Next.IsZero() || s.Next.Before(second.Next)) {
			second.Next = s.Next
		}
	}
	return second
}

// maxMargin is the time that an execution keeps for the records after the last run was stopped; a short one keeps a tenth.
const maxMargin = 30 * time.Second

// Limits divide the time of an execution, or of an invocation of Functions. When that time is over, the platform kills
// this process, with all that runs in it.
type Limits struct {
	Run   time.Duration // up to here runs are started; zero: no limit
	Grace time.Duration // after it those that run may go on
}

// Divide divides a time-out; zero is none.
func Divide(timeout, grace time.Duration) Limits {
	if timeout == 0 {
		return Limits{Grace: grace}
	}
	grace = min(grace, timeout/4)
	return Limits{Run: timeout - min(timeout/10, maxMargin) - grace, Grace: grace}
}

// tickLimits are the limits of the command tick.
func (s *Settings) tickLimits() Limits { return Divide(s.TickTimeout, s.Grace) }

// LimitGrace gives the runs of the command tick the grace that the time of an execution has room for.
func (a *App) LimitGrace() { a.Scheduler.Grace = a.Settings.tickLimits().Grace }

// InTime is the context of the command tick, which ends before the platform ends the execution.
func (a *App) InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if run := a.Settings.tickLimits().Run; run > 0 {
		return context.WithTimeout(ctx, run)
	}
	return context.WithCancel(ctx)
}

// Patience is how long the command tick waits for the next tick: the stay; half of the time for runs, if that is less.
func (a *App) Patience() time.Duration {
	stay := a.Settings.Patience()
	if run := a.Settings.tickLimits().Run; run > 0 {
		stay = min(stay, run/2)
	}
	return stay
}
