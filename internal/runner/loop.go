package runner

import (
	"context"
	"sync"

	"github.com/soloist-go/soloist/internal/ontime"
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
			r.join(ctx, agenda)
		default:
			waiting.Go(func() {
				select {
				case r.turn.drive <- struct{}{}:
					r.join(ctx, agenda)
				case <-ctx.Done():
				}
			})
		}
	}
	agenda.Run(ctx)
}

// join has the agenda step through the job. The caller has taken the turn.
func (r *Runner) join(ctx context.Context, agenda *ontime.Agenda) {
	begun := false
	r.alarm.Ring = func() {
		if !begun {
			r.begin(ctx)
			begun = true
		}
		for ctx.Err() == nil {
			// Timers stand still while a machine is suspended, so no sleep is long.
			if d := min(r.step(ctx, &call{}), maxSleep); d > 0 && agenda.Set(&r.alarm, d) {
				return
			}
		}
		r.source.setLooping(false)
		<-r.turn.drive
	}
	if !agenda.Set(&r.alarm, 0) {
		<-r.turn.drive
	}
}

// begin is what comes before the first step.
func (r *Runner) begin(ctx context.Context) {
	if r.job.EveryReplica {
		r.here.settled = r.replica.Wall() // a replica that starts has no older tick due, even if it has run before
		_ = r.replica.Orders.Refresh(ctx) // one try: the job may be paused
	}
	r.source.setLooping(true)
}

// A turn says who drives a runner: Loop, or one call of RunDue.
type turn struct {
	drive chan struct{} // has room for the driver
	call  chan struct{} // has room for the call that drives
	next  chan struct{} // has room for one call that waits for that
}

func newTurn() turn {
	return turn{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
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
