package supervise

import (
	"context"
	"errors"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// An overrun is a run that goes on though its context has ended. Two goroutines
// of the watchdog watch for it, so that the store does not delay what the process
// has to do.

var errCheckHangs = errors.New("the run has returned and its health check has not")

// watchReturn waits for a run whose context has ended while it keeps its lease,
// or has none. After the length of a lease the status tells that it does not
// return. Of a run without a lease that has stalled, after a sixth of that.
func (w *watchdog) watchReturn(over context.Context) {
	if !until(over, w.handle.ctx) {
		return
	}
	cause, patience := context.Cause(w.handle.ctx), w.under.Length
	switch {
	case !endsLease(cause):
	case w.under.Lease != nil:
		return // watchLoss waits for it
	default:
		patience = w.under.callTimeout()
	}
	if cause == errReturned {
		cause = errCheckHangs
	}
	kept := context.Background() // for ever without a lease
	if w.under.Lease != nil {
		kept = w.under.Lease.Context()
	}
	if !lease.WaitFor(over, kept, patience) {
		return
	}
	w.status.Overrun(cause)
	w.log.Error("the run ignores the end of its context", "cause", cause)
}

// watchLoss waits for a run whose lease is lost, or given up after a stall,
// whatever ended its context first. If the run does not return within a sixth of
// the lease, the process may have to end before another replica has the lease.
func (w *watchdog) watchLoss(over context.Context) {
	if !until(over, w.handle.ctx) {
		return
	}
	cause := context.Cause(w.handle.ctx)
	if !endsLease(cause) {
		held := w.under.Lease.Context()
		if !until(over, held) {
			return
		}
		cause = context.Cause(held)
	}
	if !lease.WaitFor(over, over, w.under.callTimeout()) {
		return
	}
	w.status.Overrun(cause)
	w.status.Leaseless(cause)
	w.log.Error("the run goes on without its lease", "cause", cause)
}

// endsLease reports whether a run whose context ended by cause has no lease any
// more, or soon has none.
func endsLease(cause error) bool {
	return errors.Is(cause, store.ErrLost) || errors.Is(cause, ErrStalled)
}

// until waits for the end of ctx. It returns false if over ends first.
func until(over, ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return over.Err() == nil
	case <-over.Done():
		return false
	}
}
