package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/functions"
)

const (
	containerStart = 10 * time.Second // what an execution of a job of Container Apps takes at least until it looks for ticks
	ticksSampled   = 200              // of a job
)

// checkDeadlines returns the starting deadlines that cannot be kept, as nothing looks for ticks but once a minute: a scheduled
// job of Container Apps, and in Functions the timer for all jobs.
func checkDeadlines(a *app.App) error {
	start, where := containerStart, "a job of Container Apps"
	if app.InFunctions() {
		start, where = 0, "the function tick"
	} else if os.Getenv("CONTAINER_APP_JOB_NAME") == "" {
		return nil
	}
	if a.Alarm != nil {
		return nil
	}
	var errs []error
	for _, j := range a.Scheduler.Jobs {
		deadline := j.StartingDeadline
		if deadline == 0 && j.Missed == soloist.SkipMissed {
			deadline = cmp.Or(j.Lease, a.Settings.Lease)
		}
		if deadline == 0 || j.EveryReplica || app.InFunctions() && functions.OwnTimer(j, a.Now()) {
			continue
		}
		if tick, late := latest(j, a.Now()); late+start > deadline {
			errs = append(errs, fmt.Errorf("job %q: a run may start %s after its tick (StartingDeadline, or the lease with SkipMissed), and %s looks for the tick of %s %s after it at the earliest: want more, SOLOIST_ALARM=queue, or a replica that serves",
				j.Name, deadline, where, tick.Format(time.RFC3339), late+start))
		}
	}
	return errors.Join(errs...)
}

// latest returns one of the next ticks of a job that is the furthest before a whole minute, and how far that is.
func latest(j soloist.Job, now time.Time) (tick time.Time, late time.Duration) {
	s, err := app.TicksOf(j)
	if err == nil {
		tick = s.Next(now)
	}
	if tick.IsZero() { // it follows another job, is wrong, or is a manual run
		return tick, -containerStart
	}
	for n, at := 0, tick; n < ticksSampled && !at.IsZero(); n, at = n+1, s.Next(at) {
		if wait := at.Add(time.Minute - 1).Truncate(time.Minute).Sub(at); wait > late {
			tick, late = at, wait
		}
	}
	return tick, late
}
