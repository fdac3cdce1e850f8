package soloist

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// A JobStatus is what the store tells of one job or singleton.
type JobStatus struct {
	Name       string
	Singleton  bool
	Everywhere bool       // runs on each replica: there is neither lease nor record
	Schedule   string     // in words; empty for a singleton
	Lease      LeaseState // empty: there is no entry, or it could not be read
	Record     Record     // zero: none yet
	Checkpoint int64      // its length in bytes; zero: none, or the store does not tell
	Next       time.Time  // the next tick by the schedule in force; zero: none, or not known
	Foreign    bool       // the record is of another schedule, the one in force, than this Scheduler's
	Waits      time.Time  // of a run whose job was unlocked: about when another can follow it; zero: it was not
	Err        error      // why Record could not be read
	Occupied   error      // why nothing runs: a client that claims nothing has the lease
}

// Status reads every record once. The error is what Validate says; what a
// single read came to is in its JobStatus.
func (s *Scheduler) Status(ctx context.Context) ([]JobStatus, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	all := make([]JobStatus, len(s.workers))
	each(s.workers, func(w *worker) { all[w.index] = w.status(ctx) })
	return all, nil
}

func (w *worker) status(ctx context.Context) JobStatus {
	st := JobStatus{Name: w.job, Singleton: w.ticks == nil}
	if !st.Singleton {
		st.Schedule = w.words()
	}
	if w.everywhere {
		st.Everywhere, st.Next = true, w.ticks.Next(w.wall())
		return st
	}
	entry, err := w.read(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is made when a scheduler starts
		st.Next = w.next(&Record{Through: w.dueTime()})
		return st
	case err != nil:
		st.Err = err
		return st
	}
	w.readable()
	st.Lease, st.Checkpoint = entry.State, entry.Checkpoint
	if st.Record, st.Err = decodeRecord(entry.Record, w.App, w.job); st.Err == nil {
		st.Err = w.unusable(&st.Record)
		st.Next, st.Waits = w.next(&st.Record), w.waits(&st.Record, w.dueTime())
	}
	if r := &st.Record; st.Err == nil && r.Spec != "" && r.Spec != w.spec {
		st.Foreign, st.Next = true, r.nextDue()
	}
	if st.Err == nil {
		st.Occupied = w.occupiedStatus(&st)
	}
	return st
}
