// Package supervise runs a task once, with its tries: it watches that the run
// makes progress and ends in time, and is what a run can ask while it goes on.
package supervise

import (
	"context"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
)

// A Task is what there is to run, as the program says.
type Task struct {
	Do            func(ctx context.Context, h *Handle) error
	Timeout       time.Duration // of a try; zero: none
	MaxTries      int
	Backoff       time.Duration // before the second try
	MaxCheckpoint int           // bytes

	// When a run counts as stalled.
	HeartbeatTimeout time.Duration // zero: none
	HealthCheck      func(context.Context) error
	HealthInterval   time.Duration // between two calls of HealthCheck
	FailureThreshold int           // failures of HealthCheck in a row
}

// A Status is where the replica keeps how its runs fare.
type Status interface {
	// Overrun keeps why the context of a run ended that has not returned since,
	// nil once it has.
	Overrun(cause error)

	// Leaseless: the run goes on though its lease is lost, and the process may
	// have to end.
	Leaseless(cause error)

	// Flush waits until the log has taken its lines, but no longer than d.
	Flush(d time.Duration)
}

// An Attempt is one run of a task under one lease, with its tries.
type Attempt struct {
	Task   *Task
	Info   Info
	Under  *Conditions
	Jitter *lease.Jitter
	Status Status
	Log    *slog.Logger // of the scheduler's own lines
}
