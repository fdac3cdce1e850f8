package soloist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A JobStatus is what the store says about one job or singleton.
type JobStatus struct {
	Name         string
	Shard        int // which part of Shards this one is
	Shards       int // zero: it is no shard
	Singleton    bool
	EveryReplica bool             // runs on each replica: there is neither lease nor record
	Schedule     string           // in words; empty for a singleton
	Lease        store.LeaseState // empty: the job has no entry, or it could not be read
	Record       record.Record    // zero: none yet
	Checkpoint   int64            // its length in bytes; zero: none, or the store does not know it
	Next         time.Time        // the next tick by the schedule in force; zero: none, or not known
	Foreign      bool             // the schedule in force is another one than this Scheduler's, and the record belongs to it
	Waits        time.Time        // if the job was unlocked during a run: about when the next run can follow; else zero
	Paused       bool             // its ticks are skipped: by its settings here, by itself, or by an order, as far as this Scheduler runs and has read it
	Err          error            // why Record could not be read
	Occupied     error            // why nothing runs: a client that claims nothing holds the lease
	After        string           // the jobs that it follows, with commas between them; empty: none
	Late         record.Late      // of Job.FinishBy: the late ticks since the last success, reported or not; zero: none
	Awaits       string           // the jobs of After whose outcome Next waits for, once it has come; empty: none
	Begins       time.Time        // the first tick of all, while it is to come, as before Job.From; else zero
	Over         time.Time        // the last tick of all, if it has its outcome, as after Job.Until: the job is over; else zero

	Backfill record.BackfillProgress // the last one, as far as this Scheduler has read the orders
}

// Status reads every record once; many of them by a listing, if the store is a [store.Lister]. The
// error is Validate's; the error of a single read is in its JobStatus. Answers share what
// has not changed between them: do not change Record.History or what is in it.
func (s *Scheduler) Status(ctx context.Context) ([]JobStatus, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	_ = s.core.replica.Orders.Refresh(ctx) // without the orders a status may leave out that a job is paused
	all := make([]JobStatus, len(s.core.runners))
	for i, st := range runner.Statuses(ctx, s.core.runners) {
		all[i] = JobStatus(st)
	}
	return all, nil
}

// StatusOf is [Scheduler.Status] of one job or singleton, or of one shard. It reads only the records of
// that job and of the jobs that it follows.
func (s *Scheduler) StatusOf(ctx context.Context, job string) (JobStatus, error) {
	of, err := s.runner(job)
	if err != nil {
		return JobStatus{}, err
	}
	runners := []*runner.Runner{of}
	for _, name := range of.After() {
		before, _ := s.runner(name) // Validate knows that there is one
		runners = append(runners, before)
	}
	_ = s.core.replica.Orders.Refresh(ctx) // as in Status
	return JobStatus(runner.Statuses(ctx, runners)[0]), nil
}

// Health is the state of a [Scheduler] on this replica.
type Health struct {
	Running []string         // jobs and singletons that run here now
	Stuck   []string         // those whose loop makes no more steps: restart the process
	Broken  map[string]error // those that this replica cannot run, and why; a singleton, if its shards cannot be spread over the replicas
	Overrun map[string]error // those with a lease that go on though their context has ended, and why: restart the process
	Skew    time.Duration    // how far the wall clock is ahead of the store's, behind if negative, as far as that is proved
	Storage error            // why the store does not answer, also a [Once] that is bound and runs; nil: it does, as far as known
	Reached bool             // the store has answered at least once, or such a Once
	Log     error            // why log lines wait: the log has accepted none for three minutes; nil: none waits that long
	Events  error            // why events wait: the function Events has not returned for three minutes; nil: none waits that long
}

// Health returns the state of the scheduler from memory. It makes no call to the store.
func (s *Scheduler) Health() Health {
	s.once.Do(s.prepare)
	h := s.core.replica.Health()
	trouble, reached := s.core.beside.storage()
	if h.Storage == nil {
		h.Storage = trouble
	}
	return Health{Running: h.Running, Stuck: h.Stuck, Broken: h.Broken, Overrun: h.Overrun, Skew: h.Skew,
		Storage: h.Storage, Reached: h.Reached || reached, Log: s.core.told.lines.Blocked(), Events: s.core.told.eventsBlocked()}
}

// A Report says what one call of [Scheduler.RunDue] did.
type Report struct {
	Jobs []JobReport
	Next time.Time // when the next tick of any job is due that waits for no other job; zero: there is none
}

// A JobReport says what one call did for one job.
type JobReport struct {
	Job     string
	Ran     []event.Outcome // what was run here, in order
	Replica string          // the replica that runs the job now instead; this one, if another call does
	Next    time.Time       // the next tick that is not settled; zero: there is none
	Err     error           // why the job could not be checked, or why something claimed has no outcome by this call
	Awaits  string          // the jobs whose outcome Next waits for, once it has come; empty: none. See Job.After
}

// newReport sums up the reports of the jobs and joins their errors.
func newReport(jobs []JobReport) (Report, error) {
	r := Report{Jobs: jobs}
	var errs []error
	for _, j := range jobs {
		if j.Err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", j.Job, j.Err))
		}
		if !j.Next.IsZero() && j.Awaits == "" && (r.Next.IsZero() || j.Next.Before(r.Next)) {
			r.Next = j.Next
		}
	}
	return r, errors.Join(errs...)
}
