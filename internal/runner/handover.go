package runner

import (
	"context"
	"sync/atomic"
	"time"
)

// A handover lets StepDown end what runs here under a lease, and wait for that.
type handover struct {
	stop  func()
	over  chan struct{} // closed when the lease is given up
	heed  chan struct{} // has room for one: an order has come, or is over
	at    atomic.Int64  // elapsed time when the stop came, in nanoseconds; zero: it has not
	ended bool          // the lease is given up; guarded by the state
}

// stoppable makes the context that ends when the replica stops or when StepDown is
// called. The caller must call done when it has given up the lease: StepDown waits for
// that.
func (h *hold) stoppable() (done func()) {
	stop, cancel := context.WithCancel(h.ctx)
	hand := &handover{stop: cancel, over: make(chan struct{}), heed: make(chan struct{}, 1)}
	undo := context.AfterFunc(stop, func() { hand.at.CompareAndSwap(0, int64(h.client.Clock.Elapsed())) })
	h.stop, h.hand = stop, hand
	var before *handover // of the loop, if this is a manual run in parallel
	h.source.state.set(func(n *snapshot) { before, n.hand = n.hand, hand })
	return func() {
		h.source.state.set(func(n *snapshot) {
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

// graceLeft returns for how long a run may go on if the replica is to stop. A run that begins
// after the stop has what is left of the grace.
func (h *hold) graceLeft() time.Duration {
	grace := h.grace()
	if h.stop.Err() == nil {
		return grace
	}
	now := h.client.Clock.Elapsed()
	h.hand.at.CompareAndSwap(0, int64(now))
	return max(0, grace-(now-time.Duration(h.hand.at.Load())))
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
