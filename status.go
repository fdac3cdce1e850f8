package soloist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A JobStatus is what the store tells of one job or singleton.
type JobStatus struct {
	Name         string
	Singleton    bool
	EveryReplica bool             // runs on each replica: there is neither lease nor record
	Schedule     string           // in words; empty for a singleton
	Lease        store.LeaseState // empty: there is no entry, or it could not be read
	Record       store.Record     // zero: none yet
	Checkpoint   int64            // its length in bytes; zero: none, or the store does not tell
	Next         time.Time        // the next tick by the schedule in force; zero: none, or not known
	Foreign      bool             // the record is of another schedule, the one in force, than this Scheduler's
	Waits        time.Time        // of a run whose job was unlocked: about when another can follow it; zero: it was not
	Err          error            // why Record could not be read
	Occupied     error            // why nothing runs: a client that claims nothing has the lease
}

// Status reads every record once. The error is what Validate says; what a
// single read came to is in its JobStatus.
func (s *Scheduler) Status(ctx context.Context) ([]JobStatus, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	all := make([]JobStatus, len(s.runners))
	s.each(s.runners, func(i int, r *runner.Runner) { all[i] = JobStatus(r.Status(ctx)) })
	return all, nil
}

// Health is how a [Scheduler] fares on this replica.
type Health struct {
	Running []string         // jobs and singletons that run here now
	Stuck   []string         // those whose loop does not come round: restart the process
	Broken  map[string]error // those that cannot be looked after, and why
	Overrun map[string]error // those with a lease that go on though their context has ended, and why: restart the process
	Skew    time.Duration    // how far the wall clock is ahead of the store's, behind if negative, as far as that is proved
	Storage error            // why the store is out of reach; nil: it is not, as far as known
	Reached bool             // the store has answered, once
	Log     error            // why the lines of the log wait: it has taken none for three minutes; nil: they do not
}

// Health returns how the scheduler fares. It asks nobody.
func (s *Scheduler) Health() Health {
	s.once.Do(s.prepare)
	return Health(s.replica.Health())
}

// A Report tells what one call of [Scheduler.RunDue] did.
type Report struct {
	Jobs []JobReport
	Next time.Time // when the next tick of any job is due; zero: none ever
}

// A JobReport tells what was done for one job.
type JobReport struct {
	Job     string
	Ran     []store.Outcome // what was run here, in order
	Replica string          // the replica that runs it now instead; this one, if another call does
	Next    time.Time       // the next tick that is not settled; zero: none ever
	Err     error           // why it could not be looked after, or what was claimed has no outcome by this call
}

// newReport sums up; the error joins those of the jobs.
func newReport(jobs []JobReport) (Report, error) {
	r := Report{Jobs: jobs}
	var errs []error
	for _, j := range jobs {
		if j.Err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", j.Job, j.Err))
		}
		if !j.Next.IsZero() && (r.Next.IsZero() || j.Next.Before(r.Next)) {
			r.Next = j.Next
		}
	}
	return r, errors.Join(errs...)
}
