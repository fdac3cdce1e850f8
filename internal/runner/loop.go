package runner

import (
	"context"
	"sync"

	"github.com/soloist-go/soloist/internal/lease"
)

// Each calls f for every runner, side by side, and waits for all.
func Each(runners []*Runner, f func(*Runner)) {
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(func() { f(r) })
	}
	all.Wait()
}

// Loop steps until ctx ends.
func (r *Runner) Loop(ctx context.Context) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return
	}
	if r.job.EveryReplica {
		r.here.settled = r.replica.Wall() // a replica that starts owes nothing, also for the second time
	}
	r.source.setLooping(true)
	defer r.source.setLooping(false)
	for ctx.Err() == nil {
		lease.Sleep(ctx, min(r.step(ctx, &call{}), maxSleep))
	}
}
