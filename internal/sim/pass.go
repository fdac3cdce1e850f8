package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A process is a replica that ends by itself when an alarm is pending for what comes next.
type process struct {
	*replica
	*platform
	alarm  *alarm.Clock
	defs   []trace.Definition
	called world.Mail // the message for which a function is called; without an ID: there is none
	serves bool       // until nothing is due for the stay
}

// begins brings a replica up that lives until nothing is due; called for a message, if it is a function.
func (p *platform) begins(s *slot, name, why string, called world.Mail) *replica {
	defs, version := p.program()
	one, _, _ := s.bring(trace.Event{Replica: name, Op: why, ID: fmt.Sprint("version ", version), Note: why + " ", Cause: trace.AtZero}, defs)
	x := &process{replica: one, platform: p, alarm: p.clock(one.Scheduler, one.Machine, version), defs: defs, called: called}
	x.serves = p.Kind == trace.AsApp
	p.Cluster.begin(one, x.live)
	return one
}

// live is what the process does until it ends.
func (x *process) live() {
	if x.serves {
		x.serve()
		return
	}
	if x.called.Id != "" {
		x.alarm.Taken(string(x.called.Body))
	}
	x.served = x.pass() == nil && x.giveBack() == nil && !x.Gone()
}

// giveBack leaves the message of a function to the version for which it is.
func (x *process) giveBack() error {
	if x.called.Id == "" {
		return nil
	}
	ctx, cancel := x.lastCalls()
	defer cancel()
	return x.alarm.GiveBack(ctx, string(x.called.Body), x.called.Inserted)
}

// passes are the passes of a process: one does not wait for the runs of another.
type passes struct {
	*process
	all     sync.WaitGroup
	running atomic.Int32
	ran     atomic.Bool
	failed  atomic.Pointer[error] // the error of the pass that ended last
	ended   chan struct{}
	n       int       // so far
	start   time.Time // of the last one
	quiet   time.Time // when something has run last, or the beginning
	roll    *draw.Roll
}

// pass does what is due, and what comes due while something runs or while the process waits for the next tick. Then it hands
// over to the next alarm.
func (x *process) pass() error {
	ctx, cancel := context.WithTimeout(x.ctx, trace.LongestPass)
	defer cancel()
	p := &passes{process: x, ended: make(chan struct{}, 1), start: time.Now(), quiet: time.Now(), roll: draw.New(x.Seed, 0, "passes", x.Machine.Name)}
	release := x.alarm.Guard(ctx, guardSpan)
	err := p.run(ctx, time.Now().Add(trace.LongestPass/2))
	p.all.Wait()
	release(err == nil && !x.Gone())
	if failed := p.failed.Load(); failed != nil {
		err = errors.Join(*failed, err)
	}
	return err
}

// guardSpan is how long after the death of a process its guard wakes the app up.
const guardSpan = 45*time.Second + 3*draw.Odd

// run goes on until nothing comes due in the time that the process waits for a tick. After enough there may be too little
// time for another run, so then it goes on only while something runs.
func (p *passes) run(ctx context.Context, enough time.Time) error {
	p.begin(ctx)
	for pause := time.Second + draw.Odd; ; {
		if ctx.Err() != nil || p.Gone() {
			p.all.Wait()
		}
		idle := p.idle()
		due, err := p.due()
		now := p.alarm.Now() // what time it is, is known since the first answer of the store
		if idle && p.ran.Swap(false) && time.Now().Before(enough) {
			p.quiet = time.Now()
		}
		wait, quiet := due.Sub(now), now.Add(-time.Since(p.quiet))
		over := due.IsZero() || due.Sub(quiet) > p.patience() || now.Sub(quiet) > p.patience()
		if p.Gone() || idle && (err != nil || ctx.Err() != nil || over) {
			return p.handOver(due, err, now.Add(-time.Since(p.start)))
		}
		switch { // only what was due before has waits grow
		case due.IsZero():
			wait = lookPause
		case wait <= 0:
			wait, pause = pause, min(2*pause, 15*time.Second)
		default:
			wait, pause = max(wait, leastPause), time.Second+draw.Odd
		}
		if tick := p.nextTick(now); !tick.IsZero() { // due may be the tick of another job, which cannot begin
			wait = min(wait, max(tick.Sub(now), leastPause))
		}
		if !idle {
			wait = min(wait, lookPause)
		}
		if p.until(ctx, wait) {
			p.begin(ctx)
		}
	}
}

// nextTick is the next tick of any job, by the schedules alone.
func (x *process) nextTick(after time.Time) (next time.Time) {
	for _, d := range x.defs {
		if d.Every == 0 || d.EveryReplica || d.Paused || d.Follows != "" {
			continue
		}
		if at := d.After(after); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// leastPause is how long a pass waits at least for a tick: the service's clock may be a little behind.
const leastPause = 50*time.Millisecond + draw.Odd

// lookPause is how often a pass is begun at least while an earlier one waits for its runs.
const lookPause = 30*time.Second + draw.Odd

// begin begins a pass, and gives it a moment.
func (p *passes) begin(ctx context.Context) {
	p.start = time.Now()
	p.running.Add(1)
	p.n++
	one := context.WithValue(ctx, world.Apart{}, fmt.Sprint(" in pass ", p.n))
	p.all.Go(func() {
		report, err := p.RunDue(one, soloist.Wake{})
		if slices.ContainsFunc(report.Jobs, func(j soloist.JobReport) bool { return len(j.Ran) > 0 }) {
			p.ran.Store(true)
		}
		p.failed.Store(&err)
		p.running.Add(-1)
		select {
		case p.ended <- struct{}{}:
		default:
		}
	})
	p.until(ctx, time.Second+draw.Odd)
}

// until waits, and reports whether that time is over. The end of a pass, of the machine or of ctx ends it early. It goes on a
// moment later than what else goes on then, so that a seed is the same simulation each time.
func (p *passes) until(ctx context.Context, d time.Duration) bool {
	end := time.Now().Add(d)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ended:
	case <-p.Dead:
	case <-ctx.Done():
	}
	p.Machine.Sleep(context.Background(), p.roll.Between(0, time.Millisecond), p.roll)
	return !time.Now().Before(end) && !p.Gone() && ctx.Err() == nil
}

// idle reports whether all have ended that were begun.
func (p *passes) idle() bool {
	select {
	case <-p.ended:
	default:
	}
	return p.running.Load() == 0
}

// patience is how long a process waits for the next tick.
func (p *platform) patience() time.Duration { return max(p.Stay, p.Lead) }

// due is when a replica is wanted next.
func (x *process) due() (time.Time, error) {
	ctx, cancel := x.lastCalls()
	defer cancel()
	return x.NextDue(context.WithValue(ctx, world.Apart{}, " for the alarm"))
}

// lastCalls is the context of calls that are made at the end, also after a stop.
func (x *process) lastCalls() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	stop := make(chan struct{})
	x.platform.wg.Go(func() {
		select {
		case <-x.Dead:
			cancel()
		case <-stop:
		}
	})
	return ctx, func() { close(stop); cancel() }
}

// handOver ends a pass. Where it is not known when the next tick is due, the messages stay as they are.
func (x *process) handOver(due time.Time, unknown error, began time.Time) error {
	ctx, cancel := x.lastCalls()
	defer cancel()
	err := unknown
	if err == nil {
		err = x.alarm.HandOver(ctx, due, began)
	}
	x.tell(trace.HandedOver, err)
	if errors.Is(err, alarm.ErrPending) {
		return nil
	}
	return err
}

// tell notes that the process says that an alarm is pending.
func (x *process) tell(op string, err error) {
	if x.Gone() {
		return
	}
	e := trace.Event{What: trace.Handed, Op: op, Replica: x.Machine.Name}
	if err != nil && !errors.Is(err, alarm.ErrPending) {
		e.Note = "failed"
	}
	x.platform.log.Add(e)
}

// set sees to it that an alarm is pending while the process is up, by Set or Renew of its clock.
func (x *process) set(by func(context.Context, time.Time) error) {
	due, err := x.due()
	if err == nil {
		ctx, cancel := x.lastCalls()
		defer cancel()
		err = by(ctx, due)
	}
	x.tell("", err)
}

// serve runs what is due until nothing has run for the stay, and nothing is due within it.
func (x *process) serve() {
	done := make(chan struct{})
	x.platform.wg.Go(func() {
		defer close(done)
		if err := x.Run(x.ctx); err != nil {
			panic(err)
		}
	})
	x.Rest(x.ctx, draw.Odd) // after a read of the orders at the same instant, a second read may or may not be necessary
	x.set(x.alarm.Renew)
	x.untilIdle()
	x.cancel()
	<-done
	if !x.Gone() {
		x.set(x.alarm.Set) // what has run to the end of a stop may have to be run again
	}
}

// untilIdle returns when the process may end, or has to. A process that stays up hands over nevertheless.
func (x *process) untilIdle() {
	quiet, next := time.Now(), time.Time{}
	for {
		if x.Rest(x.ctx, time.Second+draw.Odd); x.ctx.Err() != nil || x.Gone() {
			return
		}
		if len(x.Health().Running) > 0 {
			quiet, next = time.Now(), time.Time{}
			continue
		}
		if time.Since(quiet) < x.Stay || time.Now().Before(next) {
			continue
		}
		start := time.Now()
		due, err := x.due()
		now := x.alarm.Now()
		next = start.Add(30 * time.Second)
		if x.ctx.Err() != nil || x.Gone() {
			return
		}
		if err == nil && !due.IsZero() && due.Sub(now) <= x.patience() {
			continue
		}
		if x.handOver(due, err, now.Add(-time.Since(start))) != nil {
			continue
		}
		if x.Stay > 0 && len(x.Health().Running) == 0 {
			return
		}
		if next = start.Add(time.Hour); !due.IsZero() {
			next = start.Add(max(30*time.Second, due.Sub(now)-x.patience()))
		}
	}
}
