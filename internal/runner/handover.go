package runner

import "context"

// stoppable returns a context that ends when the replica stops or when StepDown is
// called. The caller must call done when it has given up the lease: StepDown waits for
// that.
func (r *Runner) stoppable(ctx context.Context, c *call) (stop context.Context, done func()) {
	stop, cancel := context.WithCancel(ctx)
	hand := &handover{stop: cancel, over: make(chan struct{}), heed: make(chan struct{}, 1)}
	undo := context.AfterFunc(stop, func() { hand.at.CompareAndSwap(0, int64(r.client.Clock.Elapsed())) })
	c.hand = hand
	var before *handover // of the loop, if this is a manual run in parallel
	r.source.state.set(func(n *snapshot) { before, n.hand = n.hand, hand })
	return stop, func() {
		r.source.state.set(func(n *snapshot) {
			hand.ended = true
			if n.hand != hand { // a manual run in parallel has put its own there
				return
			}
			if n.hand = before; before != nil && before.ended {
				n.hand = nil
			}
		})
		undo() // this end is no stop
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

// hurry lets what waits under the lease look at the orders. It may be called on nil.
func (h *handover) hurry() {
	if h == nil {
		return
	}
	select {
	case h.heed <- struct{}{}:
	default: // it is about to look
	}
}
