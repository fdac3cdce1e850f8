package runner

import (
	"context"
	"sync"
	"time"
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

// Loop steps until ctx ends, and then returns as soon as the step has: a run that is
// under way keeps its Grace. It waits for a call of RunDue to end first, since a
// Runner belongs to one goroutine.
func (r *Runner) Loop(ctx context.Context) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return
	}
	if r.job.EveryReplica {
		r.here.settled = r.replica.Wall() // a replica that starts owes no older tick, even if it has run before
		_ = r.replica.Orders.Refresh(ctx) // one try: the job may be paused
	}
	r.source.setLooping(true)
	defer r.source.setLooping(false)
	for ctx.Err() == nil {
		// Timers stand still while a machine is suspended, so no sleep is long.
		r.sleep(ctx, min(r.step(ctx, &call{}), maxSleep))
	}
}

// sleep returns after d, at a nudge, or when ctx ends.
func (r *Runner) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.nudge:
	case <-ctx.Done():
	}
}
