package supervise

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// longestBackoff limits the doubling of a task's Backoff.
const longestBackoff = 5 * time.Minute

// Run runs the task, again after a failure while tries last, and returns its
// outcome: none if the lease was lost before the first try. It holds the lease all
// the while.
func (a *Attempt) Run() (status store.Status, reason string) {
	pause := &lease.Backoff{First: a.Task.Backoff, Longest: longestBackoff, Jitter: a.Jitter}
	for try := 1; ; try++ {
		err, cause := a.try(try)
		switch {
		case err == errNotStarted && try == 1:
			return "", ""
		case err == errNotStarted:
			return a.unfinished(try-1, reason)
		}
		status, reason = outcome(err, cause)
		if status != store.Failed || try >= a.Task.MaxTries || a.Under.held().Err() != nil || isPermanent(err) {
			return status, reason
		}
		wait := pause.Next()
		if after, ok := retryAfter(err); ok {
			wait = max(wait, after)
		}
		a.Log.Warn("try failed", "try", try, "of", a.Task.MaxTries, "error", reason, "next", wait.Round(time.Millisecond))
		if !lease.WaitFor(a.Under.Stop, a.Under.held(), wait) {
			return a.unfinished(try, reason)
		}
	}
}

// unfinished is the outcome of a run that had tries left.
func (a *Attempt) unfinished(try int, reason string) (store.Status, string) {
	if held := a.Under.held(); held.Err() != nil {
		return store.Abandoned, fmt.Sprintf("%v after try %d: %s", context.Cause(held), try, reason)
	}
	return store.Abandoned, fmt.Sprintf(plan.Stopped+" after try %d: %s", try, reason)
}

// try calls the user's function once, under a context that ends with the trust
// in the lease, the timeout, a stall, or the grace after stop, whichever comes
// first. It does not if the lease is lost: the wait for the log comes before the
// look at the deadline, and nothing after the look waits.
func (a *Attempt) try(n int) (err, cause error) {
	a.Log.Info("run started", "try", n)
	a.Status.Flush(a.Under.callTimeout()) // so that it comes before the run's own lines
	if a.Under.Lease != nil && a.Under.Lease.Expired() {
		a.Log.Warn("the lease was lost before the run began: not run", "try", n)
		return errNotStarted, nil
	}
	ctx, end := context.WithCancelCause(a.Under.held())
	h := newHandle(a, ctx, n)
	if a.Task.Timeout > 0 {
		t := time.AfterFunc(a.Task.Timeout, func() { end(fmt.Errorf("%w after %s", ErrTimeout, a.Task.Timeout)) })
		defer t.Stop()
	}
	defer h.stopAfterGrace(end)()
	watched := watch(a, h, end)
	err = call(a.Log, func() error { return a.Task.Do(ctx, h) })
	h.endOver()
	end(errReturned)
	gaveUp := watched()
	switch cause = context.Cause(ctx); {
	case gaveUp != nil: // others have been told so, whatever came next
		cause = gaveUp
	case cause == errReturned:
		cause = nil
	}
	return err, cause
}

func newHandle(a *Attempt, ctx context.Context, try int) *Handle {
	over, end := context.WithCancel(context.Background())
	return &Handle{Info: a.Info, Try: try, under: a.Under, timeout: a.Task.Timeout, largest: a.Task.MaxCheckpoint,
		ctx: ctx, over: over, endOver: end, start: a.Under.Elapsed(), alarm: make(chan struct{}, 1), beat: time.Now()}
}
