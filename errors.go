package soloist

import (
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// Why a run's context ended, as [context.Cause] returns it.
var (
	ErrLost      = store.ErrLost
	ErrStalled   = supervise.ErrStalled
	ErrTimeout   = supervise.ErrTimeout
	ErrCancelled = supervise.ErrCancelled
	ErrReplaced  = supervise.ErrReplaced
	ErrStopped   = supervise.ErrStopped
)

// ErrHeld is returned when another replica runs the job.
var ErrHeld = store.ErrHeld

// ErrNotRunning is what [Scheduler.Order] returns if there is no run to end.
var ErrNotRunning = runner.ErrNotRunning

// ErrRefused is what [Scheduler.Order] returns for an order that is not possible, or while the
// orders cannot be used before a person has corrected them. Nothing was written, and another
// try would fail too.
var ErrRefused = control.ErrRefused

// ErrUntold is what [Scheduler.Unlock] returns if it has ended the lease and could not write
// that into the record.
var ErrUntold = runner.ErrUntold

// Permanent wraps the error of a job for which another try would fail as well.
// Permanent(nil) is nil.
func Permanent(err error) error { return supervise.Permanent(err) }

// RetryAfter wraps the error of a job whose next try, if one is left, should come no earlier
// than d from now, as a service that throttles asks for. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return supervise.RetryAfter(err, d) }

// Skip returns the error of a job that found nothing to do: the tick is skipped, neither
// succeeded nor failed.
func Skip(reason string) error { return supervise.Skip(reason) }
