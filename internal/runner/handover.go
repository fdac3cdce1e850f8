package runner

import "context"

// stoppable returns a context that a stop of the replica ends, and StepDown.
func (r *Runner) stoppable(ctx context.Context) (stop context.Context, done func()) {
	stop, cancel := context.WithCancel(ctx)
	hand := &handover{cancel, make(chan struct{})}
	r.source.state.set(func(n *snapshot) { n.hand = hand })
	return stop, func() {
		r.source.state.set(func(n *snapshot) {
			if n.hand == hand {
				n.hand = nil
			}
		})
		cancel()
		close(hand.over)
	}
}

// StepDown hands over what runs here, and returns once that is done or ctx has
// ended. It returns false if no lease is held here.
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
