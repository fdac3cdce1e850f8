package soloist

import (
	"context"
	"fmt"
)

// StepDown hands over what this replica runs of a job or singleton, as a stop
// of the replica would: the record says so, other replicas come near, the run's
// context ends with [ErrStopped], and another replica may have the lease. It
// returns once the run is over or ctx has ended; a run that calls it waits for
// itself. This replica then leaves the job alone for a third of its lease and a
// second. An error: there is no such job, or no lease of it is held here.
func (s *Scheduler) StepDown(ctx context.Context, job string) error {
	w, err := s.worker(job)
	if err != nil {
		return err
	}
	st := w.state.get()
	if st.stepDown == nil {
		return fmt.Errorf("%s holds no lease on this replica", job)
	}
	st.stepDown()
	select {
	case <-st.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// worker returns the one of a job or singleton.
func (s *Scheduler) worker(job string) (*worker, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	for _, w := range s.workers {
		if w.job == job {
			return w, nil
		}
	}
	return nil, fmt.Errorf("there is no job or singleton %q", job)
}

// stoppable returns a context that a stop of the replica ends, and StepDown.
func (w *worker) stoppable(ctx context.Context) (stop context.Context, done func()) {
	stop, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	w.set(func(s *seen) { s.stepDown, s.over = cancel, over })
	return stop, func() {
		w.set(func(s *seen) {
			if s.over == over { // not that of a term that has begun since, of the loop or by hand
				s.stepDown, s.over = nil, nil
			}
		})
		cancel()
		close(over)
	}
}
