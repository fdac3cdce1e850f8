package soloist

import (
	"errors"
	"fmt"
	"time"
)

// A Report tells what one call of [Scheduler.RunDue] did.
type Report struct {
	Jobs []JobReport
	Next time.Time // when the next tick of any job is due; zero: none ever
}

// A JobReport tells what was done for one job.
type JobReport struct {
	Job    string
	Ran    []Fate    // what was run here, in order
	Holder string    // the replica that runs it now instead; this one, if another call does
	Next   time.Time // the next tick that is not settled; zero: none ever
	Err    error     // why it could not be looked after, or what was claimed has no fate by this call
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
