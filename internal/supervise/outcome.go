package supervise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// Why a run's context ended; see also [store.ErrLost].
var (
	// ErrStalled: the run sent no heartbeat in time, or its HealthCheck failed.
	ErrStalled = errors.New("stalled")
	// ErrTimeout: the try took longer than Timeout.
	ErrTimeout = errors.New("timed out")
	// ErrCancelled: an operator has cancelled the run.
	ErrCancelled = errors.New("cancelled")
	// ErrReplaced: a newer tick of the job is due, and takes the place of the run.
	ErrReplaced = errors.New(plan.Replaced)
	// ErrStopped: Grace has passed since the replica was asked to stop.
	ErrStopped = errors.New("the replica is stopping")
)

var (
	// errReturned ends the context of a function that has returned: it is no cause.
	errReturned = errors.New("the run has returned")
	// errNotStarted: the lease was lost before the function was called.
	errNotStarted = errors.New("the run was not started")
	// errBarred: an operator has paused the job before the function was called.
	errBarred = errors.New("the run may not start")
)

// Cancelled returns the cause that ends a run which an operator has cancelled.
func Cancelled(e record.End) error { return fmt.Errorf("%w %s", ErrCancelled, plan.CancelledBy(e)) }

// Replaced returns the cause that ends a run whose place a newer tick takes.
func Replaced(by time.Time) error {
	return fmt.Errorf("%w by the tick of %s", ErrReplaced, by.UTC().Format(time.RFC3339))
}

// Permanent wraps the error of a task for which another try would fail as well.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// A permanentError marks the user's error; its text stays as it is, since it is recorded.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// IsPermanent reports whether an error is one of Permanent. It also finds one wrapped once more by the
// user. Of joined errors, all have to be permanent: another try may help the others.
func IsPermanent(err error) bool { return each[*permanentError](err) }

// each reports whether an error has the type, or wraps one, or joins errors all of which do.
func each[T error](err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case T:
		return true
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(one error) bool { return !each[T](one) })
	}
	return each[T](errors.Unwrap(err))
}

// RetryAfter wraps the error of a task whose next try should come no earlier than d
// from now.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err, d}
}

// A retryError marks the user's error with the pause that it asks for.
type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

// AskedPause returns the pause that an error asks for. It also finds one wrapped once more by
// the user.
func AskedPause(err error) (time.Duration, bool) {
	if after, ok := errors.AsType[*retryError](err); ok {
		return after.after, true
	}
	return 0, false
}

// Skip returns the error of a task that found nothing to do.
func Skip(reason string) error { return &skipError{reason} }

// Skips reports whether err says that a task found nothing to do. A failure that is joined with a skip is a failure.
func Skips(err error) bool { return each[*skipError](err) }

// A skipError is an error only by its type: the tick counts as skipped, which is
// neither a success nor a failure.
type skipError struct{ reason string }

func (e *skipError) Error() string { return "skipped: " + e.reason }

// A fixedError keeps the text that the user's error had when it was returned. The
// user may change the error later, while other goroutines log and record it.
type fixedError struct {
	error
	text   string
	left   int    // bytes that the text has not, though it says so
	causes string // what the error wraps
}

func (e *fixedError) Error() string { return e.text }
func (e *fixedError) Unwrap() error { return e.error }

// fixed wraps the error that the user's function has returned. It calls every method
// of the error that will be called later, while call can still recover: a nil pointer
// in the error interface makes such a method panic, and the panic must fail this run
// and not end the process.
func fixed(err error) error {
	if err == nil {
		return nil
	}
	_ = errors.Is(err, errGoexit)
	_, _ = errors.AsType[*skipError](err)
	_, _ = Skips(err), IsPermanent(err)
	text := err.Error()
	if left := len(text) - longestError; left > 0 {
		head := clip(text, longestError)
		left = len(text) - len(head)
		return &fixedError{error: err, text: strings.Clone(head) + leftOut(left), left: left}
	}
	return &fixedError{error: err, text: text, causes: causes(err)}
}

// longestError is how many bytes of the text of an error are logged. A record keeps less.
const longestError = longestDetail

// outcome derives the status and the reason of a try from the error that it returned
// and the cause that ended its context, nil if none did. The order of the cases is
// the rule: a run that succeeded in spite of a stop has succeeded; a run that
// failed after a stop was stopped; and so on.
func outcome(err, cause error) (event.Status, string) {
	switch {
	// The record already says so, and other replicas act on it. A nil error that
	// comes later does not change that.
	case errors.Is(cause, ErrStalled):
		return event.Stalled, stallReason(cause)
	case err == nil:
		return event.Succeeded, inSpiteOf(cause)
	case Skips(err):
		skip, _ := errors.AsType[*skipError](err)
		return event.Skipped, strings.Trim(skip.reason+"; "+inSpiteOf(cause), "; ")
	case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrReplaced):
		return event.Cancelled, with(cancellation(cause), err, ErrCancelled, ErrReplaced)
	case errors.Is(cause, ErrStopped):
		return event.Abandoned, with(plan.Stopped, err, ErrStopped)
	case errors.Is(cause, store.ErrLost):
		return event.Abandoned, cause.Error()
	// The function returned only that its context had ended; cause says why.
	case cause != nil && errors.Is(err, context.Canceled):
		return event.Failed, cause.Error()
	case cause != nil && !errors.Is(err, cause):
		return event.Failed, fmt.Sprintf("%v: %v", cause, err)
	}
	return event.Failed, err.Error()
}

// inSpiteOf is the reason of a run that returned as if nothing had ended its context. Both are facts.
func inSpiteOf(cause error) string {
	if cause == nil {
		return ""
	}
	return "after the end of its context: " + cause.Error()
}

// with adds to a reason what the function returned, unless that repeats that its context had ended, for one of the causes.
func with(reason string, err error, causes ...error) string {
	if slices.ContainsFunc(append(causes, context.Canceled), func(cause error) bool { return errors.Is(err, cause) }) {
		return reason
	}
	return fmt.Sprintf("%s: %v", reason, err)
}

// cancellation is who or what has cancelled or replaced a run, without the word that the status repeats; stallReason is the
// same for a stall.
func cancellation(cause error) string {
	return strings.TrimPrefix(cause.Error(), ErrCancelled.Error()+" ")
}

func stallReason(cause error) string {
	return strings.TrimPrefix(cause.Error(), ErrStalled.Error()+": ")
}
