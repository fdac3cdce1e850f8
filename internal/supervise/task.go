// Package supervise runs the user's function for one claimed tick, or for one
// term of a singleton. [Attempt.Run] calls the function, tries it again after a
// failure, and returns the outcome. Meanwhile a watchdog ends a run that makes no
// progress, and reports a run that ignores the end of its context. A [Handle] is
// what the running function can ask: its lease, its checkpoint, its time.
//
// The package neither acquires nor releases the lease, and it writes no outcome:
// internal/runner does both, after Run has returned.
package supervise

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
)

// A Task is what the program wants to be run. The root fills it from a Job or a
// Singleton, with the defaults in place of zeros.
type Task struct {
	Do            func(ctx context.Context, h *Handle) error
	Timeout       time.Duration // of a try; zero: none
	MaxTries      int           // calls of Do in one attempt, all under the same lease
	Backoff       time.Duration // before the second try
	MaxCheckpoint int           // the largest checkpoint that Save accepts, in bytes

	// These say when a run counts as stalled.
	HeartbeatTimeout time.Duration               // the longest time without a heartbeat; zero: no limit
	HealthCheck      func(context.Context) error // nil: it is not called
	HealthInterval   time.Duration               // between two calls of HealthCheck
	FailureThreshold int                         // that many failures of HealthCheck in a row end the run
}

// A Status receives the state of a run that the replica shows in its Health. It
// is an interface so that this package does not import the runner.
type Status interface {
	// Overrun records that a run goes on though its context has ended, and why
	// the context has ended. Nil says that the run has returned.
	Overrun(cause error)

	// Leaseless reports a run that goes on although another replica may soon get
	// its lease: the program should end the process.
	Leaseless(cause error)

	// Flush waits until all queued log lines are written, for at most d.
	Flush(d time.Duration)
}

// An Attempt is one claimed tick on one replica: up to Task.MaxTries calls of the
// user's function under one lease and one token.
type Attempt struct {
	Task   *Task
	Info   event.Run // without a try
	Under  *Conditions
	Jitter *lease.Jitter
	Status Status
	Emit   func(event.Event)        // must not block; it adds which run an event is about
	Mask   func(text string) string // takes secrets out of what the user's functions say; nil: there are none

	// Returned is when the function has returned last, or the pause after that has ended, in elapsed time. Run sets it.
	Returned time.Duration

	detail detail
}
