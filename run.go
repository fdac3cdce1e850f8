package soloist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
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
	Token   int64        // the fencing token: grows with each run of this name; zero Everywhere
	Log     *slog.Logger // tells job, tick and token with each line

	live *live
	own  *slog.Logger // as Log, for lines of the scheduler: through its queue
}

// ID names the tick, the same on every attempt, so it serves as an idempotency
// key: "nightly-report@2026-11-21T02:30:00Z". A singleton's has its token
// instead of the tick, a run by hand its request. Of a job that runs Everywhere
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

// Heartbeat says that the run makes progress, which Silence asks for, and how
// far it is. It calls nobody: the note, of which 100 characters count, is
// written into the record at most once a minute, or each third of Silence if
// that is longer. An error says why the run has to end: [ErrLost] once its
// lease cannot be trusted any more, else what [context.Cause] tells. Such a
// heartbeat does not count.
func (r *Run) Heartbeat(note string) error {
	if r.live == nil {
		return nil
	}
	return r.live.heartbeat(note)
}

// Remaining is how long the run may go on for sure, even if no renewal succeeds
// any more: the time that a side effect may take. It is the least of what the
// lease, Timeout, and Grace after a stop or after the deadline of the caller's
// context leave. A stop may still come and make it shorter. It is zero once the
// run has to end, and very long where nothing limits it.
func (r *Run) Remaining() time.Duration {
	if r.live == nil {
		return math.MaxInt64
	}
	return r.live.remaining()
}

// Check asks the store whether the run still has its lease, before a side
// effect that is worth the call. [ErrLost]: it has not. Another error: nobody
// knows. A job that runs Everywhere has no lease and gets nil.
func (r *Run) Check(ctx context.Context) error {
	if r.live == nil || r.live.hold == nil {
		return nil
	}
	return r.live.check(ctx)
}

// Save keeps v, as JSON, as the checkpoint of the job: what the next run, here
// or elsewhere, gets from Load. It is written together with the record, so the
// store refuses a run that has lost its lease, with [ErrLost]. It counts as a
// heartbeat, and is tried until ctx ends or the lease is lost.
func (r *Run) Save(ctx context.Context, v any) error {
	if r.live == nil || r.live.hold == nil {
		return errNoEntry
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be written as JSON: %w", err)
	}
	return r.live.save(ctx, b)
}

// Load reads what was saved last into v, as json.Unmarshal does. It leaves v as
// it is when nothing was. It is tried until ctx ends or the lease is lost.
func (r *Run) Load(ctx context.Context, v any) error {
	if r.live == nil || r.live.hold == nil {
		return errNoEntry
	}
	b, err := r.live.load(ctx)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("the checkpoint does not fit: %w", err)
	}
	return nil
}

var (
	errNoEntry  = errors.New("a run without a lease has no checkpoint")
	errNoKeeper = errors.New("the store keeps no checkpoints: it is none of this module's, and its Lease is no Keeper")
	errOver     = errors.New("the run is over")
)

// live is a run under way: one try.
type live struct {
	ctx       context.Context // of the user's function
	clock     *serviceClock
	hold      *hold           // nil: Everywhere
	over      context.Context // ends when the user's function has returned
	end       func()          // says that it has
	start     time.Duration   // elapsed
	timeout   time.Duration   // zero: none
	stop      context.Context // ends when the run is to stop, which it has to within afterStop
	afterStop time.Duration   // Grace
	largest   int             // checkpoint

	alarm chan struct{} // has room to tell the minder that others, who were told so, are not needed

	mu       sync.Mutex
	stopSeen bool
	stopAt   time.Duration // elapsed, when stop was seen to have ended
	beat     time.Time     // monotonic: the last heartbeat, at first the start; there is none while the machine is suspended
	note     string        // of it
}

// valid returns why the run has to end, or has ended. It also cuts off
// goroutines that the user's function has left behind.
func (l *live) valid(now time.Duration) error {
	switch {
	case l.over.Err() != nil:
		return errOver
	case l.ctx.Err() != nil:
		return context.Cause(l.ctx)
	}
	return l.leased(now)
}

// leased returns ErrLost if the lease is lost, or cannot be trusted at now.
func (l *live) leased(now time.Duration) error {
	switch {
	case l.hold == nil:
		return nil
	case l.hold.trusted() <= now:
		l.hold.lost(errNotRenewed) // the goroutine that watches is late
		return errNotRenewed
	}
	return context.Cause(l.hold.held)
}

// ended reports whether the run has to end. It looks at the hold too: the end of
// the hold reaches the contexts that depend on it one after the other, in any
// order, and the run's own may be the last of them.
func (l *live) ended() bool {
	return l.ctx.Err() != nil || l.hold != nil && l.hold.held.Err() != nil
}

func (l *live) heartbeat(note string) error {
	at := time.Now()
	if err := l.valid(l.clock.elapsed()); err != nil {
		return err
	}
	l.count(at, note)
	return nil
}

func (l *live) count(at time.Time, note string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beat = later(l.beat, at)
	l.note = cut(note, maxNoteLen)
	if l.hold != nil && l.hold.announced.Load() {
		select {
		case l.alarm <- struct{}{}:
		default:
		}
	}
}

// last is the last heartbeat.
func (l *live) last() (beat time.Time, note string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beat, l.note
}

func (l *live) remaining() time.Duration {
	now := l.clock.elapsed()
	if l.valid(now) != nil {
		return 0
	}
	left := l.beforeStop(now)
	if l.timeout > 0 {
		left = min(left, l.start+l.timeout-now)
	}
	if l.hold != nil {
		left = min(left, l.hold.left())
	}
	return max(0, left)
}

// beforeStop is how long a stop that has come, or is known to come, leaves.
func (l *live) beforeStop(now time.Duration) time.Duration {
	if l.stop.Err() != nil {
		return l.stopped(now) + l.afterStop - now
	}
	if deadline, ok := l.stop.Deadline(); ok {
		return time.Until(deadline) + l.afterStop
	}
	return math.MaxInt64
}

// stopped returns when the stop was first seen, which is now if it was not.
func (l *live) stopped(now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopSeen {
		l.stopSeen, l.stopAt = true, now
	}
	return l.stopAt
}

func (l *live) check(ctx context.Context) error {
	if err := l.valid(l.clock.elapsed()); err != nil {
		return err
	}
	if err := l.hold.renew(ctx); err != nil {
		return l.refused(err)
	}
	return l.valid(l.clock.elapsed())
}

// keeper is for work on the checkpoint, which a run that is asked to stop may
// still do for the length of its lease. The context that it returns ends with
// the run and the lease too.
func (l *live) keeper(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l.over.Err() != nil {
		return nil, nil, errOver
	}
	if _, ok := l.hold.lease.(Keeper); !ok {
		return nil, nil, errNoKeeper
	}
	if err := l.leased(l.clock.elapsed()); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop1 := context.AfterFunc(l.hold.held, func() { cancel(context.Cause(l.hold.held)) })
	stop2 := context.AfterFunc(l.over, func() { cancel(errOver) })
	stop3 := context.AfterFunc(l.ctx, func() {
		if waitFor(ctx, ctx, l.hold.length) {
			cancel(context.Cause(l.ctx))
		}
	})
	end := func() { stop1(); stop2(); stop3(); cancel(nil) }
	if l.over.Err() != nil { // meanwhile
		end()
		return nil, nil, errOver
	}
	return ctx, end, nil
}

func (l *live) save(ctx context.Context, b []byte) error {
	if len(b) > l.largest {
		return fmt.Errorf("the checkpoint has %d bytes of JSON and MaxCheckpoint is %d: save less, or raise it up to %d", len(b), l.largest, MaxCheckpoint)
	}
	ctx, cancel, err := l.keeper(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, note := l.last()
	err = l.hold.write(ctx, l.hold.progress(time.Now(), note), b, l.hold.lasting)
	if err == nil {
		_, note = l.last() // a heartbeat may have come since
		l.count(time.Now(), note)
	}
	return l.refused(err)
}

func (l *live) load(ctx context.Context) ([]byte, error) {
	ctx, cancel, err := l.keeper(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	b, err := l.hold.load(ctx)
	return b, l.refused(err)
}

// refused ends the run after an answer that says that its lease is gone.
func (l *live) refused(err error) error {
	if !definite(err) {
		return err
	}
	err = fmt.Errorf("%w: %w", ErrLost, err)
	l.hold.lost(err)
	return err
}
