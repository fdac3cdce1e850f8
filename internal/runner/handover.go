package runner

import "context"

// stoppable returns a context that ends when the replica stops or when StepDown is
// called. The caller must call done when it has given up the lease: StepDown waits for
// that.
func (r *Runner) stoppable(ctx context.Context) (stop context.Context, done func()) {
	stop, cancel := context.WithCancel(ctx)
	hand := &handover{cancel, make(chan struct{})}
	r.source.state.set(func(n *snapshot) { n.hand = hand })
	return stop, func() {
		r.source.state.set(func(n *snapshot) {
			if n.hand == hand { // a run by hand beside this one may have put its own there
				n.hand = nil
			}
		})
		cancel()
		close(hand.over)
	}
}

// StepDown hands over what this replica runs of the job, as a stop would. It returns
// once the lease is given up or ctx has ended. It returns false if this replica has no
// lease of the job.
func (r *Runner) StepDown(ctx context.Context) (held bool, err error) {
	hand := r.source.state.get().hand
	if hand == nil {
		return false, nil
	}
	hand.stop()
	select {
	case <-hand.over:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}
