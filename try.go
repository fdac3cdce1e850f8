package soloist

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

const (
	defaultBackoff = 10 * time.Second
	longestBackoff = 5 * time.Minute
)

// do runs the tick, again after a failure while tries last, and returns its
// fate: none if the lease was lost before the first try. It holds the lease all
// the while.
func (w *worker) do(stop, held context.Context, h *hold, run *Run) (status Status, reason string) {
	pause := &backoff{w.tryAfter, w.tryAfter, longestBackoff, w.dice}
	for try := 1; ; try++ {
		this := *run
		this.Try = try
		err, cause := w.try(stop, held, h, &this)
		switch {
		case err == errNotStarted && try == 1:
			return "", ""
		case err == errNotStarted:
			return unfinished(held, try-1, reason)
		}
		status, reason = outcome(err, cause)
		if status != Failed || try >= w.tries || held.Err() != nil || isPermanent(err) {
			return status, reason
		}
		wait := pause.next()
		if after, ok := errors.AsType[*retryError](err); ok {
			wait = max(wait, after.after)
		}
		run.own.Warn("try failed", "try", try, "of", w.tries, "error", reason, "next", wait.Round(time.Millisecond))
		if !waitFor(stop, held, wait) {
			return unfinished(held, try, reason)
		}
	}
}

// waitFor returns false if a stop or the loss of the lease comes before the
// end of d.
func waitFor(ctx, held context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return held.Err() == nil && ctx.Err() == nil
	case <-ctx.Done():
	case <-held.Done():
	}
	return false
}

// unfinished is the fate of a tick that had tries left.
func unfinished(held context.Context, try int, reason string) (Status, string) {
	if held.Err() != nil {
		return Abandoned, fmt.Sprintf("%v after try %d: %s", context.Cause(held), try, reason)
	}
	return Abandoned, fmt.Sprintf(stopped+" after try %d: %s", try, reason)
}

// try calls the user's function once, under a context that ends with the trust
// in the lease, the timeout, a stall, or the grace after stop, whichever comes
// first. It does not if the lease is lost: the wait for the log comes before the
// look at the deadline, and nothing after the look waits.
func (w *worker) try(stop, held context.Context, h *hold, run *Run) (err, cause error) {
	run.own.Info("run started", "try", run.Try)
	w.lines.wait(w.cell.try()) // so that it comes before the run's own lines
	if h != nil && h.expired() {
		run.own.Warn("the lease was lost before the run began: not run", "try", run.Try)
		return errNotStarted, nil
	}
	c, end := context.WithCancelCause(held)
	run.live = w.begin(c, stop, h)
	if w.timeout > 0 {
		t := time.AfterFunc(w.timeout, func() { end(fmt.Errorf("%w after %s", ErrTimeout, w.timeout)) })
		defer t.Stop()
	}
	defer run.live.stopAfterGrace(end)()
	minded := w.mind(stop, run, end)
	err = call(c, w.work, run)
	run.live.end()
	end(errReturned)
	gaveUp := minded()
	switch cause = context.Cause(c); {
	case gaveUp != nil: // others have been told so, whatever came next
		cause = gaveUp
	case cause == errReturned:
		cause = nil
	}
	return err, cause
}

var (
	errReturned   = errors.New("the run has returned")
	errNotStarted = errors.New("the run was not started")
)

func (w *worker) begin(ctx, stop context.Context, h *hold) *live {
	over, end := context.WithCancel(context.Background())
	return &live{ctx: ctx, alarm: make(chan struct{}, 1), over: over, end: end, clock: w.clock, hold: h,
		start: w.clock.elapsed(), timeout: w.timeout, stop: stop, afterStop: w.grace(), largest: w.largest, beat: time.Now()}
}

// stopAfterGrace ends a run once it is to stop and the grace is over.
func (l *live) stopAfterGrace(end context.CancelCauseFunc) (cancel func()) {
	returned := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-returned:
			return
		case <-l.stop.Done():
		}
		l.stopped(l.clock.elapsed())
		t := time.NewTimer(l.afterStop)
		defer t.Stop()
		select {
		case <-returned:
		case <-t.C:
			end(ErrStopped)
		}
	}()
	return func() { close(returned); <-done }
}

// grace is what a run has after a stop. A singleton's task has no end to wait
// for: it goes on until others are near, so that nobody is without it for long.
func (w *worker) grace() time.Duration {
	if w.ticks == nil {
		return min(w.Grace, w.comeCloser())
	}
	return w.Grace
}

// comeCloser is how long it takes until the other replicas, which look at each
// third of the lease, have seen that a run is to be handed over.
func (w *worker) comeCloser() time.Duration {
	return max(w.length, time.Duration(w.rec.Lease))/3 + time.Second
}

var errGoexit = errors.New("the job ended its goroutine (runtime.Goexit)")

// call runs f in a goroutine of its own, so that neither a panic nor a Goexit
// of one job reaches another.
func call(ctx context.Context, f func(context.Context, *Run) error, run *Run) error {
	err := errGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				run.own.Error("panicked", "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		err = f(ctx, run)
		inspect(err)
	}()
	<-done
	return err
}

// inspect calls the methods of an error that are called later. Those of a nil
// pointer in an error may panic: here the panic is the run's, and not the
// process's.
func inspect(err error) {
	if err != nil {
		_, _ = err.Error(), errors.Is(err, errGoexit)
		_, _ = errors.AsType[*skipError](err)
	}
}

// outcome is the fate that a run's error and the end of its context make.
func outcome(err, cause error) (Status, string) {
	skip, skipped := errors.AsType[*skipError](err)
	switch {
	case errors.Is(cause, ErrStalled): // others have been told so
		return Stalled, why(cause)
	case err == nil:
		return Succeeded, ""
	case skipped:
		return Skipped, skip.reason
	case errors.Is(cause, ErrStopped):
		return Abandoned, stoppedWith(err)
	case errors.Is(cause, ErrLost):
		return Abandoned, cause.Error()
	case cause != nil && errors.Is(err, context.Canceled):
		return Failed, cause.Error()
	case cause != nil && !errors.Is(err, cause):
		return Failed, fmt.Sprintf("%v: %v", cause, err)
	}
	return Failed, err.Error()
}

// stoppedWith is the reason of a run that a stop has ended, with what it returned,
// unless that is only the end of its context.
func stoppedWith(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped) {
		return stopped
	}
	return fmt.Sprintf(stopped+": %v", err)
}

// why leaves out of the cause of a stall what the status says.
func why(stalled error) string {
	return strings.TrimPrefix(stalled.Error(), ErrStalled.Error()+": ")
}

func logOutcome(run *Run, status Status, reason string, took time.Duration) {
	log := run.own.Info
	if status == Failed || status == Stalled || status == Abandoned && !run.Tick.IsZero() {
		log = run.own.Warn
	}
	args := []any{"outcome", status, "took", took}
	if reason != "" {
		args = append(args, "reason", reason)
	}
	log("run ended", args...)
}
