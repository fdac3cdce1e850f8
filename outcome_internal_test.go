package soloist

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// The outcome by what the run returned (down) and why its context ended.
func TestOutcome(t *testing.T) {
	boom := errors.New("boom")
	timeout := fmt.Errorf("%w after 10s", ErrTimeout)
	stalled := fmt.Errorf("%w: no heartbeat for 20s", ErrStalled)
	lost := fmt.Errorf("%w: no renewal in time", ErrLost)
	for _, test := range []struct {
		name       string
		err, cause error
		status     Status
		reason     string
	}{
		{"nil", nil, nil, Succeeded, ""},
		{"nil after the time-out", nil, timeout, Succeeded, ""},
		{"nil after a stop", nil, ErrStopped, Succeeded, ""},
		{"nil after the loss of the lease", nil, lost, Succeeded, ""},
		{"nil after a stall", nil, stalled, Stalled, "no heartbeat for 20s"}, // other replicas know it
		{"error", boom, nil, Failed, "boom"},
		{"error after the time-out", boom, timeout, Failed, timeout.Error() + ": boom"},
		{"error after a stop", boom, ErrStopped, Abandoned, "stopped: boom"},
		{"error after the loss of the lease", boom, lost, Abandoned, lost.Error()},
		{"error after a stall", boom, stalled, Stalled, "no heartbeat for 20s"},
		{"context.Canceled", context.Canceled, nil, Failed, "context canceled"},
		{"context.Canceled after the time-out", context.Canceled, timeout, Failed, timeout.Error()},
		{"context.Canceled after a stop", context.Canceled, ErrStopped, Abandoned, "stopped"},
		{"context.Canceled after the loss of the lease", context.Canceled, lost, Abandoned, lost.Error()},
		{"its cause after the time-out", timeout, timeout, Failed, timeout.Error()},
		{"its cause after a stop", ErrStopped, ErrStopped, Abandoned, "stopped"},
		{"skip", Skip("nothing to do"), nil, Skipped, "nothing to do"},
		{"skip after the time-out", Skip("nothing to do"), timeout, Skipped, "nothing to do"},
		{"skip after a stop", Skip("nothing to do"), ErrStopped, Skipped, "nothing to do"},
		{"skip after a stall", Skip("nothing to do"), stalled, Stalled, "no heartbeat for 20s"},
		{"permanent", Permanent(boom), nil, Failed, "boom"},
		{"retry after", RetryAfter(boom, time.Second), nil, Failed, "boom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if status, reason := outcome(test.err, test.cause); status != test.status || reason != test.reason {
				t.Errorf("got %s %q, want %s %q", status, reason, test.status, test.reason)
			}
		})
	}
}
