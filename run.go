package soloist

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/soloist-go/soloist/internal/supervise"
)

// A Run is what running work knows of itself, and may ask. Its methods may be
// called by many goroutines at once. Those of a Run that no [Scheduler] made, as
// in a test of the work alone, ask nobody: Save and Load then fail.
type Run struct {
	Job     string       // the name of the job or singleton
	Tick    time.Time    // the tick, UTC; zero for a singleton
	Request string       // of a run by hand: who or what asked for it; Tick is when
	Attempt int          // 1, and one more for each runner of this tick that died or was stopped
	Try     int          // 1, and one more for each try of this attempt that failed
	Token   int64        // the fencing token: grows with each run of this name; zero for EveryReplica
	Log     *slog.Logger // tells job, tick and token with each line

	handle *supervise.Handle
}

// newRun returns what a run is told.
func newRun(job string, h *supervise.Handle) *Run {
	return &Run{Job: job, Tick: h.Info.Tick, Request: h.Info.Request, Attempt: h.Info.Attempt, Try: h.Try,
		Token: h.Info.Token, Log: h.Info.Log, handle: h}
}

// ID names the tick, the same on every attempt, so it serves as an idempotency
// key: "nightly-report@2026-11-21T02:30:00Z". A singleton's has its token
// instead of the tick, a run by hand its request. Of a job of EveryReplica
// all replicas have the same.
func (r *Run) ID() string {
	if r.Request != "" {
		return r.Job + "@" + r.Request
	}
	if r.Tick.IsZero() {
		return fmt.Sprintf("%s@%d", r.Job, r.Token)
	}
	return r.Job + "@" + r.Tick.Format(time.RFC3339)
}

// Heartbeat says that the run makes progress, which HeartbeatTimeout asks for, and how
// far it is. It calls nobody: the note, of which 100 characters count, is
// written into the record at most once a minute, or each third of HeartbeatTimeout if
// that is longer. An error says why the run has to end: [ErrLost] once its
// lease cannot be trusted any more, else what [context.Cause] tells. Such a
// heartbeat does not count.
func (r *Run) Heartbeat(note string) error {
	if r.handle == nil {
		return nil
	}
	return r.handle.Heartbeat(note)
}

// Remaining is how long the run may go on for sure, even if no renewal succeeds
// any more: the time that a side effect may take. It is the least of what the
// lease, Timeout, and Grace after a stop or after the deadline of the caller's
// context leave. A stop may still come and make it shorter. It is zero once the
// run has to end, and very long where nothing limits it.
func (r *Run) Remaining() time.Duration {
	if r.handle == nil {
		return math.MaxInt64
	}
	return r.handle.Remaining()
}

// Check asks the store whether the run still has its lease, before a side
// effect that is worth the call. [ErrLost]: it has not. Another error: nobody
// knows. A job of EveryReplica has no lease and gets nil.
func (r *Run) Check(ctx context.Context) error {
	if r.handle == nil {
		return nil
	}
	return r.handle.Check(ctx)
}

// Save keeps v, as JSON, as the checkpoint of the job: what the next run, here
// or elsewhere, gets from Load. It is written together with the record, so the
// store refuses a run that has lost its lease, with [ErrLost]. It counts as a
// heartbeat, and is tried until ctx ends or the lease is lost.
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

// Load reads what was saved last into v, as json.Unmarshal does. It leaves v as
// it is when nothing was. It is tried until ctx ends or the lease is lost.
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
