package soloist

import (
	"context"
	"errors"
)

// An overrun is a run that goes on though its context has ended. Two goroutines
// of the minder watch for it, so that the store does not delay what the process
// has to do.

// watchReturn waits for a run whose context has ended while it keeps its lease,
// or has none. After the length of a lease [Health] tells that it does not
// return. Of a run that runs Everywhere and has stalled, after a sixth of that.
func (m *minder) watchReturn(over context.Context) {
	if !until(over, m.ctx) {
		return
	}
	cause, patience := context.Cause(m.ctx), m.length
	switch {
	case !endsLease(cause):
	case m.hold != nil:
		return // watchLoss waits for it
	default:
		patience = m.cell.try()
	}
	if cause == errReturned {
		cause = errHealthyHangs
	}
	if !waitFor(over, m.kept(), patience) {
		return
	}
	m.setOverrun(cause)
	m.run.own.Error("the run ignores the end of its context", "cause", cause)
}

// watchLoss waits for a run whose lease is lost, or given up after a stall,
// whatever ended its context first. If the run does not return within a sixth of
// the lease, the process may have to end before another replica has the lease.
func (m *minder) watchLoss(over context.Context) {
	if !until(over, m.ctx) {
		return
	}
	cause := context.Cause(m.ctx)
	if !endsLease(cause) {
		if !until(over, m.hold.held) {
			return
		}
		cause = context.Cause(m.hold.held)
	}
	if !waitFor(over, over, m.cell.try()) {
		return
	}
	m.setOverrun(cause)
	if m.Overrun != nil {
		m.Overrun(m.job, cause)
	}
	m.run.own.Error("the run goes on without its lease", "cause", cause)
}

// kept returns a context that lives as long as the lease, for ever without one.
func (m *minder) kept() context.Context {
	if m.hold == nil {
		return context.Background()
	}
	return m.hold.held
}

// endsLease reports whether a run whose context ended by cause has no lease any
// more, or soon has none.
func endsLease(cause error) bool {
	return errors.Is(cause, ErrLost) || errors.Is(cause, ErrStalled)
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

var errHealthyHangs = errors.New("the run has returned and its Healthy has not")
