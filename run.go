package soloist

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Run is what a job's Do knows about its run, and can ask of it. Its methods may be called by
// many goroutines at once. A Run that no [Scheduler] made, as in a test of Do alone, asks neither
// the store nor the clock: its Save and Load, and locks that it returns, fail. Such a test sets Log,
// to slog.Default() for example, if Do uses it.
type Run struct {
	Job      string       // the name of the job or singleton; of a shard, the name of the shard
	Tick     time.Time    // the tick, UTC; zero for a singleton
	Request  string       // of a manual run: the name of the request; Tick is its time
	Backfill int64        // of a run of a backfill: the number of its order; else zero
	Attempt  int          // 1, and one more for each earlier runner of the tick that died or stopped
	Try      int          // 1, and one more for each earlier try of this attempt that failed
	Token    int64        // the fencing token: grows with each claim of the name; zero for EveryReplica
	Log      *slog.Logger // has job, tick and token in each line
	Shard    int          // which part of the work this run does: 0 to Shards-1
	Shards   int          // how many parts there are; 1 for a job without shards

	// Previous is the newest tick of this job that had succeeded when the run was claimed, so that
	// the run can do all since then; of a shard, the newest of that shard. It is the same on each
	// attempt and each try. Manual runs do not change it and get it too. A job of EveryReplica has no
	// record: it is the newest tick that has succeeded in this process. For a run of a backfill it is
	// the tick before Tick by the schedule, whatever became of that. Zero: none has, or the entry of
	// the job was deleted since; always zero for a singleton and a lock.
	Previous time.Time

	// Next is the next tick after Tick by the schedule of this replica; for a manual run, the next
	// after its time. Zero: there is none; always zero for a singleton and a lock.
	Next time.Time

	slot    int // of a lock, whose slots may have the same token
	handle  *supervise.Handle
	replica *runner.Replica // that runs it
}

// newRun returns the Run that Do gets for one try, which logs to log.
func newRun(log *slog.Logger, p part, h *supervise.Handle) *Run {
	request, fill := h.Run.Request, event.BackfillOf(h.Run.Request)
	if fill != 0 {
		request = ""
	}
	around := h.Around()
	log = slog.New(logqueue.Tail(ofRun(log, h.Run).Handler(), h.Logged))
	return &Run{Previous: around.Previous, Next: around.Next, Job: p.name, Shard: p.shard, Shards: p.shards, Tick: h.Run.Tick, Request: request, Backfill: fill, Attempt: h.Run.Attempt, Try: h.Run.Try,
		Token: h.Run.Token, Log: log, handle: h}
}

// ID names the tick. It is the same on every attempt, so it serves as an idempotency key:
// "nightly-report@2026-11-21T02:30:00Z". A singleton's ID has its token instead of the tick, a
// manual run's has its request; a run of a backfill has the ID of its tick. For a job of EveryReplica
// it is the same on all replicas. Shards differ in their IDs.
func (r *Run) ID() string {
	if r.Request != "" {
		return r.Job + "@" + r.Request
	}
	if r.slot > 0 {
		return fmt.Sprintf("%s@%d/%d", r.Job, r.Token, r.slot)
	}
	if r.Tick.IsZero() {
		return fmt.Sprintf("%s@%d", r.Job, r.Token)
	}
	return r.Job + "@" + r.Tick.Format(time.RFC3339)
}

// Heartbeat says that the run makes progress, which HeartbeatTimeout asks for, and how far it is.
// It makes no call to the store: the note, of which 100 characters count, is written into the
// record at most once a minute, or each third of HeartbeatTimeout if that is longer. An error says
// why the run has to end: [ErrLost] once its lease cannot be trusted any more, else what
// [context.Cause] returns. Such a heartbeat does not count.
func (r *Run) Heartbeat(note string) error {
	if r.handle == nil {
		return nil
	}
	return r.handle.Heartbeat(note)
}

// Remaining is how long the run may go on for certain, even if no renewal succeeds from now on: the
// time that a side effect may take. It is the least of what the lease leaves, what Timeout leaves,
// and what Grace leaves after a stop or after the deadline of the caller's context. A stop may still
// come and make it shorter, and so may the answer of [Scheduler.Alone] after it. It is zero once the
// run has to end, and very long if nothing limits it.
func (r *Run) Remaining() time.Duration {
	if r.handle == nil {
		return math.MaxInt64
	}
	return r.handle.Remaining()
}

// Check asks the store whether the run still has its lease, before a side effect that is worth the
// call. [ErrLost]: it has not. Any other error: it is not known. A job of EveryReplica has no lease
// and gets nil.
func (r *Run) Check(ctx context.Context) error {
	if r.handle == nil {
		return nil
	}
	return r.handle.Check(ctx)
}

// Save keeps v, as JSON, as the checkpoint of the job: what the next run, here or elsewhere, gets
// from Load. It is written together with the record, so the store refuses it with [ErrLost] if the
// run has lost its lease. Save counts as a heartbeat. It tries until ctx ends or the lease is lost.
func (r *Run) Save(ctx context.Context, v any) error {
	if r.handle == nil {
		return supervise.ErrNoEntry
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be written as JSON: %w", err)
	}
	return r.handle.Save(ctx, b)
}

// SaveIn is Save in one transaction of the store's database with what f does in it: both are kept or neither. The store
// names the type of tx; a function of its package, such as InTx of host/postgres, has it typed. f must not commit tx or roll
// it back, and may take as long as the run: the lease is renewed meanwhile. If f fails, nothing is kept, and the error is
// f's. An error that wraps [ErrLost]: the run has lost its lease, and nothing is kept. After any other error it is not
// kept, unless the store could not be asked in time. If the answer to COMMIT was lost and another replica has written since,
// the error wraps ErrLost too, and both may have been kept. A store without transactions returns an error.
func (r *Run) SaveIn(ctx context.Context, v any, f func(tx any) error) error {
	if r.handle == nil {
		return supervise.ErrNoEntry
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be written as JSON: %w", err)
	}
	return r.handle.SaveIn(ctx, b, f)
}

// FinishIn writes that the run has succeeded, in one transaction with what f does in it, as SaveIn does: the effect of f
// is kept once for each tick that has succeeded, and for no other. It is the last thing that a run does: whatever Do
// returns after it, the tick has succeeded. Only the run of a job with ticks has such an outcome, and no run of a
// backfill with others beside it.
func (r *Run) FinishIn(ctx context.Context, f func(tx any) error) error {
	if r.handle == nil {
		return supervise.ErrNoEntry
	}
	return r.handle.FinishIn(ctx, f)
}

// Clear removes the checkpoint, so that the next Load finds none. In all else it is a Save.
func (r *Run) Clear(ctx context.Context) error {
	if r.handle == nil {
		return supervise.ErrNoEntry
	}
	return r.handle.Save(ctx, []byte{})
}

// Load reads what was saved last into v, as json.Unmarshal does. It leaves v unchanged if nothing
// was saved. It tries until ctx ends or the lease is lost.
//
// The checkpoint belongs to the job and not to the tick, and a success does not end it: the next tick loads
// what this one has saved. A job whose work starts over with each tick keeps [Run.ID] as a field of v,
// and does not go on with a checkpoint of another tick; or it calls Clear as the last thing that it does.
func (r *Run) Load(ctx context.Context, v any) error {
	if r.handle == nil {
		return supervise.ErrNoEntry
	}
	b, err := r.handle.Load(ctx)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("the checkpoint does not fit: %w", err)
	}
	return nil
}

// Why a run's context ended, as [context.Cause] returns it.
var (
	ErrLost      = store.ErrLost          // its lease is lost, or cannot be trusted any more
	ErrStalled   = supervise.ErrStalled   // no heartbeat for HeartbeatTimeout, or not healthy
	ErrTimeout   = supervise.ErrTimeout   // the try has lasted for Timeout
	ErrCancelled = supervise.ErrCancelled // an operator has ordered it
	ErrReplaced  = supervise.ErrReplaced  // a newer tick is due, under the OverlapPolicy Replace
	ErrStopped   = supervise.ErrStopped   // its replica stops, or hands it over
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
