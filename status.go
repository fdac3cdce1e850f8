package soloist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A JobStatus is what the store says about one job or singleton.
type JobStatus struct {
	Name         string
	Shard        int // which part of Shards this one is
	Shards       int // zero: it is no shard
	Singleton    bool
	EveryReplica bool   // runs on each replica: there is neither lease nor record
	Schedule     string // in words; empty for a singleton
	After        string // the jobs that it follows, with commas between them; empty: none

	Lease      store.LeaseState       // empty: the job has no entry, or it could not be read
	Last       LastRun                // zero: it has never run
	History    []event.Outcome        // the last ones, newest first, without those of backfills
	Counts     map[event.Status]int64 // how many of each status, without backfills; nil: none
	Failures   int64                  // failed or stalled since the last success, without manual runs
	Succeeded  time.Time              // end of the last success, manual or not; zero: none
	Settled    time.Time              // each tick up to it has its outcome; zero: it has no record
	Checkpoint int64                  // its length in bytes; zero: none, or the store does not know it

	// Err says why the record could not be read, or cannot be used: then nothing of it is shown, and
	// Paused is false.
	Err error

	Next     time.Time // the next tick by the schedule in force; zero: none, or not known
	Awaits   string    // the jobs that it follows, whose outcome Next waits for; empty: none
	Foreign  bool      // the schedule in force, to which the record belongs, is not this Scheduler's
	Waits    time.Time // after an unlock during a run: about when the next can follow; else zero
	Occupied error     // why nothing runs: a client that claims nothing holds the lease
	Begins   time.Time // the first tick of all, while it is to come, as before Days.From; else zero
	Over     time.Time // the last tick of all, as before Days.Until, once it has its outcome; else zero

	// Paused says that ticks are skipped: by the settings here, by the job itself, or by an order, as
	// far as this Scheduler runs and has read it.
	Paused bool

	Pause    Order          // the order that pauses it, without its number; zero: none does
	Late     LateTicks      // by Late.Finish, since the last success, reported or not; zero: none
	Backfill BackfillStatus // the last one, as far as the orders were read; zero: none, or not known
}

// A LastRun is the last run of a job that was claimed. Its Request is also set for a run of a backfill: see [event.BackfillOf].
// Of ticks that a backfill runs in parallel it is the last. With [Job.ClaimAhead] a run may start after it is shown: at Start.
type LastRun struct {
	// The Status is [event.Running] until the run is known to be over. If no lease is live, its runner
	// has died.
	event.Outcome

	Note       string    // of its last heartbeat
	NoteAt     time.Time // when that was sent, by the store's clock
	UnlockedBy string    // who has ended its lease; empty: nobody
}

// LateTicks are ticks that have not succeeded in time, since the last success.
type LateTicks struct {
	Since time.Time // when the first of them should have succeeded
	Tick  time.Time // the newest
	Count int64     // how many they are
}

// A BackfillStatus is how far a backfill is.
type BackfillStatus struct {
	Order     Order                  // what was ordered
	Counts    map[event.Status]int64 // the outcomes of its ticks
	Failed    time.Time              // the last tick that came to a bad end; zero: none
	Tick      time.Time              // the first tick whose run has no outcome yet; zero: none
	Parallel  int                    // how many more ticks have such a run
	Cancelled bool
	Over      bool // nothing of it is left to run: it is done or cancelled
}

// Status reads every record once; many of them by a listing, if the store is a [store.Lister]. The
// error is Validate's; the error of a single read is in its JobStatus. An answer is the caller's own.
func (s *Scheduler) Status(ctx context.Context) ([]JobStatus, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	statuses := s.core.Statuses(ctx)
	all := make([]JobStatus, len(statuses))
	for i := range all {
		all[i] = jobStatus(&statuses[i])
	}
	return all, nil
}

// StatusOf is [Scheduler.Status] of one job or singleton, or of one shard. It reads only the records of
// that job and of the jobs that it follows.
func (s *Scheduler) StatusOf(ctx context.Context, job string) (JobStatus, error) {
	if err := s.Validate(); err != nil {
		return JobStatus{}, err
	}
	st, err := s.core.Status(ctx, job)
	if err != nil {
		return JobStatus{}, err
	}
	return jobStatus(&st), nil
}

func jobStatus(st *desk.Status) JobStatus {
	r, fill := &st.Record, &st.Backfill
	if st.Err != nil { // it may be the record of another program
		r, fill = &record.Record{}, &record.BackfillProgress{}
	}
	of := JobStatus{
		Name: st.Name, Shard: st.Shard.Index, Shards: st.Shard.Count, Singleton: st.Singleton, EveryReplica: st.EveryReplica,
		Schedule: st.Schedule, After: st.After,
		Lease: st.Lease, Last: lastRun(r), History: slices.Clone(r.History), Counts: r.Counts, Failures: r.Failures,
		Succeeded: r.Succeeded, Settled: r.Watermark, Checkpoint: st.Checkpoint, Err: st.Err,
		Next: st.Next, Awaits: st.Awaits, Foreign: st.Foreign, Waits: st.Waits, Occupied: st.Occupied, Begins: st.Begins, Over: st.Over,
		Paused: st.Paused, Late: LateTicks(st.Late), Backfill: backfillStatus(st.Name, fill),
	}
	if p := st.Pause; p != (record.Pause{}) {
		of.Pause = Order{Kind: OrderPause, Job: st.Name, By: p.By, Reason: p.Reason, Until: p.Until, At: p.At}
	}
	return of
}

// lastRun returns the last run of a record. After a claim that was given up that is the one before, with a token of its own.
func lastRun(r *record.Record) (last LastRun) {
	run := &r.Run
	if run.Claimed.IsZero() {
		return last
	}
	of := plan.LastOutcome(r, run.Status, run.Error)
	for i := range r.History {
		if o := &r.History[i]; run.Status != event.Running && o.Start.Equal(of.Start) && o.Tick.Equal(of.Tick) && o.Request == of.Request {
			of.Token = o.Token
		}
	}
	return LastRun{of, run.Progress.Note, run.Progress.At, run.Unlocked.By}
}

func backfillStatus(job string, b *record.BackfillProgress) (st BackfillStatus) {
	if b.Order.Seq == 0 {
		return st
	}
	o := &b.Order
	return BackfillStatus{Order: Order{Kind: OrderBackfill, Job: job, By: o.By, Reason: o.Reason,
		Request: record.BackfillRequest(o.Seq), Backfill: rangeOf(o), Seq: o.Seq, At: o.At, Ticks: o.Ticks},
		Counts: b.Done.Counts, Failed: b.Done.Failed, Tick: b.Tick, Parallel: b.Beside, Cancelled: o.Cancelled.Seq != 0, Over: b.Over}
}

// Health is the state of a [Scheduler] on this replica.
type Health struct {
	Running []string // jobs and singletons that run here now
	Stuck   []string // those whose loop makes no more steps: restart the process

	// Broken are those that this replica cannot run, and why. A singleton is one if its shards cannot
	// be spread over the replicas.
	Broken map[string]error

	// Overrun are those with a lease that go on though their context has ended, and why: restart the
	// process.
	Overrun map[string]error

	// Skew is how far the wall clock is ahead of the store's, behind if negative, as far as that is
	// proved.
	Skew time.Duration

	// Storage says why the store does not answer, also a [Once] that is bound and runs. Nil: it does,
	// as far as known. Reached: it has answered at least once, or such a Once.
	Storage error
	Reached bool

	// Log says why log lines wait: the log has accepted none for three minutes. Events says why events
	// wait: the function Events has not returned for three minutes. Nil: none waits that long.
	Log    error
	Events error
}

// Health returns the state of the scheduler from memory. It makes no call to the store.
func (s *Scheduler) Health() Health {
	s.once.Do(s.prepare)
	h := s.core.Replica.Health()
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
	Next time.Time // when the next tick is due that waits for no other job; zero: there is none
}

// A JobReport says what one call did for one job.
type JobReport struct {
	Job     string
	Ran     []event.Outcome // what was run here, in order
	Replica string          // the replica that runs the job now instead; this one, if another call does
	Next    time.Time       // the next tick that is not settled; zero: there is none
	Err     error           // why the job could not be checked, or a claim has no outcome by this call
	Awaits  string          // the jobs whose outcome Next waits for; empty: none. See [Job.After]
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
