package soloist

import (
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// Why a run's context ended: what [context.Cause] tells.
var (
	ErrLost    = store.ErrLost
	ErrStalled = supervise.ErrStalled
	ErrTimeout = supervise.ErrTimeout
	ErrStopped = supervise.ErrStopped
)

// ErrHeld: another replica runs the job.
var ErrHeld = store.ErrHeld

// ErrUntold is what [Scheduler.Unlock] returns after it has ended the lease, if
// it could not write so into the record.
var ErrUntold = runner.ErrUntold

// Permanent is what a job returns when another try would fail as well.
// Permanent(nil) is nil.
func Permanent(err error) error { return supervise.Permanent(err) }

// RetryAfter is what a job returns to have the next try, if one is left, no
// earlier than d from now: what a service that throttles has asked for.
// RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return supervise.RetryAfter(err, d) }

// Skip is what a job returns that found nothing to do: the tick is skipped,
// neither succeeded nor failed.
func Skip(reason string) error { return supervise.Skip(reason) }
