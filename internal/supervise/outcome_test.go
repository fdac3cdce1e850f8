package supervise

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// The outcome by what the run returned (down) and why its context ended.
func TestOutcome(t *testing.T) {
	boom := errors.New("boom")
	timeout := fmt.Errorf("%w after 10s", ErrTimeout)
	stalled := fmt.Errorf("%w: no heartbeat for 20s", ErrStalled)
	lost := fmt.Errorf("%w: no renewal in time", store.ErrLost)
	for _, test := range []struct {
		name       string
		err, cause error
		status     event.Status
		reason     string
	}{
		{"nil", nil, nil, event.Succeeded, ""},
		{"nil after the time-out", nil, timeout, event.Succeeded, "after the end of its context: timed out after 10s"},
		{"nil after a cancellation", nil, Cancelled(record.End{By: "ann"}), event.Succeeded, "after the end of its context: cancelled by ann"},
		{"nil after a stop", nil, ErrStopped, event.Succeeded, "after the end of its context: the replica is stopping"},
		{"nil after the loss of the lease", nil, lost, event.Succeeded, "after the end of its context: " + lost.Error()},
		{"nil after a stall", nil, stalled, event.Stalled, "no heartbeat for 20s"}, // other replicas know it
		{"error", boom, nil, event.Failed, "boom"},
		{"error after the time-out", boom, timeout, event.Failed, timeout.Error() + ": boom"},
		{"error after a stop", boom, ErrStopped, event.Abandoned, "stopped: boom"},
		{"error after the loss of the lease", boom, lost, event.Abandoned, lost.Error()},
		{"error after a stall", boom, stalled, event.Stalled, "no heartbeat for 20s"},
		{"context.Canceled", context.Canceled, nil, event.Failed, "context canceled"},
		{"context.Canceled after the time-out", context.Canceled, timeout, event.Failed, timeout.Error()},
		{"context.Canceled after a stop", context.Canceled, ErrStopped, event.Abandoned, "stopped"},
		{"context.Canceled after the loss of the lease", context.Canceled, lost, event.Abandoned, lost.Error()},
		{"its cause after the time-out", timeout, timeout, event.Failed, timeout.Error()},
		{"its cause after a stop", ErrStopped, ErrStopped, event.Abandoned, "stopped"},
		{"skip", Skip("nothing to do"), nil, event.Skipped, "nothing to do"},
		{"skip after the time-out", Skip("nothing to do"), timeout, event.Skipped, "nothing to do; after the end of its context: timed out after 10s"},
		{"skip after a stop", Skip("nothing to do"), ErrStopped, event.Skipped, "nothing to do; after the end of its context: the replica is stopping"},
		{"skip after a stall", Skip("nothing to do"), stalled, event.Stalled, "no heartbeat for 20s"},
		{"skip that is wrapped", fmt.Errorf("tenant a: %w", Skip("nothing to do")), nil, event.Skipped, "nothing to do"},
		{"skips alone", errors.Join(Skip("nothing to do"), Skip("closed")), nil, event.Skipped, "nothing to do"},
		{"failure with a skip", errors.Join(Skip("nothing to do"), boom), nil, event.Failed, "skipped: nothing to do\nboom"},
		{"failure with a skip, wrapped", fmt.Errorf("all: %w", errors.Join(boom, Skip("closed"))), nil, event.Failed, "all: boom\nskipped: closed"},
		{"permanent", Permanent(boom), nil, event.Failed, "boom"},
		{"retry after", RetryAfter(boom, time.Second), nil, event.Failed, "boom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if status, reason := outcome(test.err, test.cause); status != test.status || reason != test.reason {
				t.Errorf("got %s %q, want %s %q", status, reason, test.status, test.reason)
			}
		})
	}
}

// One permanent error among others does not end the tries of these.
func TestPermanentOfJoinedErrors(t *testing.T) {
	bad := errors.New("bad")
	for _, test := range []struct {
		err  error
		want bool
	}{
		{Permanent(bad), true},
		{fmt.Errorf("a: %w", Permanent(bad)), true},
		{errors.Join(Permanent(bad), Permanent(bad)), true},
		{errors.Join(Permanent(bad), bad), false},
		{fmt.Errorf("all: %w", errors.Join(bad, Permanent(bad))), false},
		{Permanent(errors.Join(bad, bad)), true},
		{bad, false},
		{nil, false},
	} {
		if got := IsPermanent(test.err); got != test.want {
			t.Errorf("%v: got %t", test.err, got)
		}
	}
}

// findings is an error whose owner goes on changing it.
type findings struct{ all []string }

func (f *findings) Error() string { return fmt.Sprint(f.all) }

// An error tells what it told when it was returned, in other goroutines and later.
func TestErrorIsFixedWhenReturned(t *testing.T) {
	f := &findings{all: []string{"slow"}}
	err := new(Attempt).call(func(event.Event) {}, func() error { return f })
	f.all[0] = "well again"
	if got, ok := errors.AsType[*findings](err); err.Error() != "[slow]" || !ok || got != f {
		t.Errorf("got %v, %v", err, got)
	}
}
