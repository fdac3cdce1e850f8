package supervise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// Why a run's context ended; see also [store.ErrLost].
var (
	ErrStalled = errors.New("stalled")
	ErrTimeout = errors.New("timed out")
	ErrStopped = errors.New("the replica is stopping")
)

var (
	errReturned   = errors.New("the run has returned")
	errNotStarted = errors.New("the run was not started")
)

// Permanent is what a task returns when another try would fail as well.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// RetryAfter is what a task returns to have the next try no earlier than d from
// now.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err, d}
}

type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

func retryAfter(err error) (time.Duration, bool) {
	if after, ok := errors.AsType[*retryError](err); ok {
		return after.after, true
	}
	return 0, false
}

// Skip is what a task returns that found nothing to do.
func Skip(reason string) error { return &skipError{reason} }

type skipError struct{ reason string }

func (e *skipError) Error() string { return "skipped: " + e.reason }

// A fixedError tells what an error of the user told when it was returned. Its owner
// may go on changing it, and it is logged and recorded by other goroutines later.
type fixedError struct {
	error
	text string
}

func (e *fixedError) Error() string { return e.text }
func (e *fixedError) Unwrap() error { return e.error }

// fixed also calls the methods of the error that are called later. Those of a nil
// pointer in an error may panic: here the panic is the run's, and not the
// process's.
func fixed(err error) error {
	if err == nil {
		return nil
	}
	_ = errors.Is(err, errGoexit)
	_, _ = errors.AsType[*skipError](err)
	return &fixedError{err, err.Error()}
}

// outcome is the outcome that a run's error and the end of its context make.
func outcome(err, cause error) (store.Status, string) {
	skip, skipped := errors.AsType[*skipError](err)
	switch {
	case errors.Is(cause, ErrStalled): // others have been told so
		return store.Stalled, stallReason(cause)
	case err == nil:
		return store.Succeeded, ""
	case skipped:
		return store.Skipped, skip.reason
	case errors.Is(cause, ErrStopped):
		return store.Abandoned, stoppedWith(err)
	case errors.Is(cause, store.ErrLost):
		return store.Abandoned, cause.Error()
	case cause != nil && errors.Is(err, context.Canceled):
		return store.Failed, cause.Error()
	case cause != nil && !errors.Is(err, cause):
		return store.Failed, fmt.Sprintf("%v: %v", cause, err)
	}
	return store.Failed, err.Error()
}

// stoppedWith is the reason of a run that a stop has ended, with what it returned,
// unless that is only the end of its context.
func stoppedWith(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped) {
		return plan.Stopped
	}
	return fmt.Sprintf(plan.Stopped+": %v", err)
}

// stallReason leaves out of the cause of a stall what the status says.
func stallReason(stalled error) string {
	return strings.TrimPrefix(stalled.Error(), ErrStalled.Error()+": ")
}
