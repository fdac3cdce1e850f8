package supervise

import (
	"context"
	"errors"
	"sync"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// An overrun is a run that goes on though its context has ended. Go cannot stop a
// goroutine, so all that is left is to report it: first in Health, then, when the
// lease is lost, by the program's Overrun function, which may end the process. Two
// goroutines of the watchdog do that, from the end of the context on. They are apart from the
// loop of watch because that one writes to the store: a write that hangs must not delay the
// report.

// errCheckHangs: the function has returned, but HealthCheck has not, and the run is
// not over before both have.
var errCheckHangs = errors.New("the run has returned and its health check has not")

// reportOverrun reports a run that goes on after its context has ended, until over ends. Then
// it closes reported, unless undo has returned true: then it does nothing when the context ends.
func (w *watchdog) reportOverrun(over context.Context) (reported <-chan struct{}, undo func() bool) {
	done := make(chan struct{})
	return done, context.AfterFunc(w.handle.ctx, func() {
		defer close(done)
		var loss sync.WaitGroup
		if w.Under.Lease != nil {
			loss.Go(func() { w.watchLoss(over) })
		}
		w.watchReturn(over)
		loss.Wait()
	})
}

// watchReturn reports a run that does not return after its context has ended, while
// it keeps its lease or has none: after a timeout, say. It waits for one length of
// the lease first, since an orderly end takes time and endangers no other replica.
// A run without a lease that has stalled gets a sixth of that: it has had time.
func (w *watchdog) watchReturn(over context.Context) {
	cause, patience := context.Cause(w.handle.ctx), w.Under.Length
	if errors.Is(cause, ErrTimeout) {
		w.Emit(event.Event{Kind: event.TimedOut, Err: cause})
	}
	switch {
	case !endsLease(cause):
	case w.Under.Lease != nil:
		return // watchLoss reports it
	default:
		patience = w.Under.callTimeout()
	}
	if cause == errReturned {
		cause = errCheckHangs
	}
	// If the lease is lost during the wait, watchLoss takes over.
	if !lease.WaitFor(over, w.Under.held(), patience) {
		return
	}
	w.Status.Overrun(cause)
	w.Emit(event.Event{Kind: event.Overrun, Note: "the run ignores the end of its context", Err: cause})
}

// watchLoss reports a run that goes on without its lease, whatever ended its context
// first: a timeout may come long before the loss. The trust ends a sixth of the lease
// before the lease does, so a run that has not returned by then may overlap the next
// holder's. That is when Leaseless lets the program end the process.
func (w *watchdog) watchLoss(over context.Context) {
	cause := context.Cause(w.handle.ctx)
	if !endsLease(cause) {
		// The run was ended for another reason and keeps its lease: wait until that
		// is lost too.
		held := w.Under.Lease.Context()
		if !until(over, held) {
			return
		}
		cause = context.Cause(held)
	}
	if !lease.WaitFor(over, over, w.Under.callTimeout()) {
		return
	}
	w.Status.Overrun(cause)
	w.Status.Leaseless(cause)
	w.Emit(event.Event{Kind: event.Overrun, Note: "the run goes on without its lease", Err: cause})
}

// endsLease reports whether cause means that the lease is gone, or will be gone soon
// because the watchdog has given it up.
func endsLease(cause error) bool {
	return errors.Is(cause, store.ErrLost) || errors.Is(cause, ErrStalled)
}

// until waits for the end of ctx and returns true. It returns false if the run is
// over first, also if both end at the same instant.
func until(over, ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return over.Err() == nil
	case <-over.Done():
		return false
	}
}
