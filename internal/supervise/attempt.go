package supervise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
)

// longestBackoff limits the doubling of a task's Backoff. The lease is renewed
// throughout the pause, so no other replica can use that time.
const longestBackoff = 5 * time.Minute

// Run calls the user's function until it succeeds, until it must not be tried
// again, or until a stop or the loss of the lease ends the attempt, and returns the
// outcome for the record. It returns an empty status if the lease was lost before
// the first try: nothing has run, so there is no outcome to write. The lease must be
// kept renewed until Run returns, pauses included.
//
// With the status [Barred] nothing has run either, and the lease is still held.
func (a *Attempt) Run() (status event.Status, reason string) {
	pause := &lease.Backoff{First: a.Task.Backoff, Longest: longestBackoff, Jitter: a.Jitter}
	for try := 1; ; try++ {
		begun, began := a.now(), a.Under.Elapsed()
		err, cause := a.try(try)
		switch {
		case err == errBarred:
			return Barred, ""
		case err == errNotStarted && try == 1:
			return "", ""
		case err == errNotStarted:
			return a.unfinished(try-1, reason)
		}
		status, reason = outcome(err, cause)
		if a.Under.told.finished.Load() {
			if err != nil {
				a.tryFailed(try, err, "after its outcome was written: "+a.masked(reason), 0)
			}
			return event.Succeeded, ""
		}
		reason = a.masked(reason) // a skip, and the cause of a stall, have texts of their own
		if status != event.Succeeded {
			a.detail.failed(try, begun, a.Returned-began, status, reason, err)
		}
		// Only a failure is tried again. A stalled run has given up its lease, and an
		// abandoned one was stopped or has lost it.
		if status != event.Failed || try >= a.Task.MaxTries || a.Under.held().Err() != nil || IsPermanent(err) {
			return status, reason
		}
		wait := pause.Next()
		// The service that throttles knows better than our Backoff, but it must not
		// shorten it.
		if after, ok := AskedPause(err); ok {
			wait = max(wait, after)
		}
		if !a.hasTime(wait) {
			a.tryFailed(try, err, reason, 0)
			return status, reason
		}
		a.tryFailed(try, err, reason, max(wait, 1)) // zero would say that no try follows
		if !a.wait(wait) {
			return a.unfinished(try, reason)
		}
	}
}

// tryFailed reports that a try has failed, for the reason in the text, and when the next one begins.
func (a *Attempt) tryFailed(try int, err error, reason string, wait time.Duration) {
	a.Emit(event.Event{Kind: event.TryFailed, Run: event.Run{Try: try}, Of: a.Task.MaxTries, Wait: wait, Err: &fixedError{error: err, text: reason}})
}

// barred returns why the first try must not begin after all, nil if it may.
func (a *Attempt) barred(try int) error {
	if try > 1 || a.Under.Barred == nil {
		return nil
	}
	return a.Under.Barred()
}

// Barred is what Run returns for a run that was barred before its first try.
const Barred event.Status = "barred"

// wait is the pause between two tries. It returns false if the attempt ends in it.
func (a *Attempt) wait(d time.Duration) bool {
	live, end := a.Under.live()
	defer end(nil)
	defer func() { a.Returned = a.Under.Elapsed() }()
	return lease.WaitFor(a.Under.Stop, live, d)
}

// hasTime reports whether a try can begin after wait and have its Timeout before the call
// ends. Else the end of the call would count as the death of the runner, and hide why the
// try before failed.
func (a *Attempt) hasTime(wait time.Duration) bool {
	if a.Under.Until.IsZero() {
		return true
	}
	left := time.Until(a.Under.Until) - wait
	return left > 0 && left >= a.Task.Timeout
}

// unfinished returns the outcome of an attempt that had tries left when a stop or
// the loss of its lease ended it. The reason has to begin with [plan.Stopped] after
// a stop, and only then: plan.Finish counts any other abandoned attempt as a death.
func (a *Attempt) unfinished(try int, reason string) (event.Status, string) {
	if held := a.Under.held(); held.Err() != nil {
		return event.Abandoned, fmt.Sprintf("%v after try %d: %s", context.Cause(held), try, reason)
	}
	if cause := a.Under.cancelled(); cause != nil {
		return event.Cancelled, fmt.Sprintf("%s after try %d: %s", cancellation(cause), try, reason)
	}
	return event.Abandoned, fmt.Sprintf(plan.Stopped+" after try %d: %s", try, reason)
}

// try calls the user's function once. The function's context ends with the trust in
// the lease, at the timeout, after a stall, or Grace after a stop, whichever comes
// first; cause is which of them did, nil if the function returned before.
//
// The order at the start is deliberate. First try waits until the log has written
// its lines, which may take as long as a call to the store. Only then does it check
// the deadline of the lease. Nothing after that check may wait: a run that starts
// after its lease has expired may overlap the next holder's.
func (a *Attempt) try(n int) (err, cause error) {
	var stopped atomic.Pointer[time.Duration] // Grace counts from then, however long the log takes
	defer context.AfterFunc(a.Under.Stop, func() {
		at := a.Under.Elapsed()
		stopped.Store(&at)
	})()
	// A run that may not begin is not reported as started. A lost lease is reported below.
	if (a.Under.Lease == nil || a.Under.Lease.Left() > 0) && a.barred(n) != nil {
		return errBarred, nil
	}
	// A run may be cancelled between its claim and its tick.
	if cause := a.Under.cancelled(); cause != nil {
		return cause, cause
	}
	a.Emit(event.Event{Kind: event.Started, Run: event.Run{Try: n}})
	a.Status.Flush(a.Under.callTimeout()) // so that the line of this event precedes the lines of the run, whose log has no queue
	if a.Under.Lease != nil && a.Under.Lease.Expired() {
		a.Emit(event.Event{Kind: event.NotStarted, Run: event.Run{Try: n}, Err: lease.ErrNotRenewed})
		return errNotStarted, nil
	}
	if err := a.barred(n); err != nil {
		a.Emit(event.Event{Kind: event.NotStarted, Run: event.Run{Try: n}, Err: err})
		return errBarred, nil
	}
	if cause := a.Under.cancelled(); cause != nil {
		a.Emit(event.Event{Kind: event.NotStarted, Run: event.Run{Try: n}, Err: cause})
		return cause, cause
	}
	// The context hangs on the lease and not on Stop: a stop leaves the run Grace.
	ctx, end := a.Under.live()
	ctx = a.Under.asking(ctx)
	h := newHandle(a, ctx, n)
	if at := stopped.Load(); at != nil {
		h.stopped(*at)
	}
	if a.Task.Timeout > 0 {
		t := time.AfterFunc(a.Task.Timeout, func() { end(fmt.Errorf("%w after %s", ErrTimeout, a.Task.Timeout)) })
		defer t.Stop()
	}
	defer h.stopAfterGrace(end)()
	watched := watch(a, h, end)
	// The order of these calls matters: the handle refuses calls once the function has
	// returned, and then the context ends.
	err = a.call(a.emit, func() error { return a.Task.Do(ctx, h) })
	a.Returned = a.Under.Elapsed() // what follows may wait for a write that gets no answer
	h.endOver()
	gaveUp := watched()
	switch cause = context.Cause(ctx); {
	// The watchdog has written to the record that the run stalled, so this is
	// the cause even if the lease was lost at the same instant.
	case gaveUp != nil:
		cause = gaveUp
	case cause == errReturned:
		cause = nil
	}
	return err, cause
}

// now is when something happens, for people; zero: it is not known.
func (a *Attempt) now() time.Time {
	if a.Under.Now == nil {
		return time.Time{}
	}
	return a.Under.Now()
}

// emit notes the stack of a panic, and hands the event over.
func (a *Attempt) emit(e event.Event) {
	if e.Kind == event.Panicked {
		a.detail.panicked(e.Stack)
	}
	a.Emit(e)
}

// newHandle returns the handle of one try. The first heartbeat is the start, so the
// HeartbeatTimeout begins again with each try.
func newHandle(a *Attempt, ctx context.Context, try int) *Handle {
	over, end := context.WithCancel(context.Background())
	run := a.Info
	run.Try = try
	return &Handle{Run: run, under: a.Under, limits: limits{a.Task.Timeout, a.Task.MaxCheckpoint},
		emit: a.Emit, detail: &a.detail, ctx: ctx, over: over, endOver: end, start: a.Under.Elapsed(), alarm: make(chan struct{}, 1), beat: time.Now()}
}

// fixed is the error of a user's function with the text that it has now, without secrets.
func (a *Attempt) fixed(err error) error {
	err = fixed(err)
	if own, ok := err.(*fixedError); ok {
		own.text = a.masked(own.text)
	}
	return err
}

func (a *Attempt) masked(text string) string {
	if a.Mask == nil {
		return text
	}
	return a.Mask(text)
}

var errGoexit = errors.New("the job ended its goroutine (runtime.Goexit)")

// call runs f in a goroutine of its own and waits for it, so that a panic or a
// runtime.Goexit in one job does not end the loop of this job or the process. Both
// become an error: a function that ended in an unknown state has failed.
func (a *Attempt) call(emit func(event.Event), f func() error) error {
	// Goexit runs the deferred calls and nothing else, so this value is left only
	// if f neither returned nor panicked.
	err := errGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				said := a.fixed(errors.New(fmt.Sprint(p))).(*fixedError)
				emit(event.Event{Kind: event.Panicked, Err: said, Stack: string(debug.Stack())})
				err = &fixedError{error: said, text: "panic: " + said.text, left: said.left}
			}
		}()
		err = a.fixed(f())
	}()
	<-done
	return err
}
