package supervise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A Handle is one try under way, as the run sees it. Its methods may be called by
// many goroutines at once.
type Handle struct {
	Info Info
	Try  int

	under   *Conditions
	timeout time.Duration   // zero: none
	largest int             // checkpoint
	ctx     context.Context // of the user's function
	over    context.Context // ends when the user's function has returned
	endOver func()          // says that it has
	start   time.Duration   // elapsed

	alarm chan struct{} // has room to tell the watchdog that others, who were told so, are not needed

	mu       sync.Mutex
	stopSeen bool
	stopAt   time.Duration // elapsed, when the stop was first seen
	beat     time.Time     // monotonic: the last heartbeat, at first the start; there is none while the machine is suspended
	note     string        // of it
}

var (
	// ErrNoEntry is what a run without a lease gets from Save and Load.
	ErrNoEntry = errors.New("a run without a lease has no checkpoint")
	errOver    = lease.ErrClosed

	errNoCheckpoints = errors.New("the store keeps no checkpoints: it is none of this module's, and its Lease is no Checkpointer")
)

// valid returns why the run has to end, or has ended. It also cuts off
// goroutines that the user's function has left behind.
func (h *Handle) valid() error {
	switch {
	case h.over.Err() != nil:
		return errOver
	case h.ctx.Err() != nil:
		return context.Cause(h.ctx)
	}
	return h.leased()
}

// leased returns ErrLost if the lease is lost, or cannot be trusted now.
func (h *Handle) leased() error {
	l := h.under.Lease
	if l == nil {
		return nil
	}
	if l.Left() <= 0 {
		l.Lose(lease.ErrNotRenewed) // the goroutine that watches is late
		return lease.ErrNotRenewed
	}
	return context.Cause(l.Context())
}

// ended reports whether the run has to end. It looks at the lease too: the end of
// the trust reaches the contexts that depend on it one after the other, in any
// order, and the run's own may be the last of them.
func (h *Handle) ended() bool {
	return h.ctx.Err() != nil || h.under.Lease != nil && h.under.Lease.Context().Err() != nil
}

// Heartbeat says that the run makes progress, and how far it is.
func (h *Handle) Heartbeat(note string) error {
	at := time.Now()
	if err := h.valid(); err != nil {
		return err
	}
	h.count(at, note)
	return nil
}

func (h *Handle) count(at time.Time, note string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = instant.Later(h.beat, at)
	h.note = note // the record keeps the beginning
	if h.under.announced.Load() {
		select {
		case h.alarm <- struct{}{}:
		default:
		}
	}
}

// last is the last heartbeat.
func (h *Handle) last() (beat time.Time, note string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.beat, h.note
}

// Remaining is how long the run may go on for sure.
func (h *Handle) Remaining() time.Duration {
	now := h.under.Elapsed()
	if h.valid() != nil {
		return 0
	}
	left := h.beforeStop(now)
	if h.timeout > 0 {
		left = min(left, h.start+h.timeout-now)
	}
	if h.under.Lease != nil {
		left = min(left, h.under.Lease.Left())
	}
	return max(0, left)
}

// beforeStop is how long a stop that has come, or is known to come, leaves.
func (h *Handle) beforeStop(now time.Duration) time.Duration {
	stop, grace := h.under.Stop, h.under.Grace
	left := time.Duration(math.MaxInt64)
	if deadline, ok := stop.Deadline(); ok {
		left = time.Until(deadline)
	}
	if stop.Err() != nil {
		left = h.stopped(now) - now
	}
	if grace > math.MaxInt64-max(0, left) {
		return math.MaxInt64
	}
	return left + grace
}

// stopped returns when the stop was first seen, which is now if it was not.
func (h *Handle) stopped(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopSeen {
		h.stopSeen, h.stopAt = true, now
	}
	return h.stopAt
}

// stopAfterGrace ends a run once it is to stop and the grace is over.
func (h *Handle) stopAfterGrace(end context.CancelCauseFunc) (cancel func()) {
	returned := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-returned:
			return
		case <-h.under.Stop.Done():
		}
		h.stopped(h.under.Elapsed())
		t := time.NewTimer(h.under.Grace)
		defer t.Stop()
		select {
		case <-returned:
		case <-t.C:
			end(ErrStopped)
		}
	}()
	return func() { close(returned); <-done }
}

// Check asks the store whether the run still has its lease. ErrLost: it has not.
func (h *Handle) Check(ctx context.Context) error {
	l := h.under.Lease
	if l == nil {
		return nil
	}
	if err := h.valid(); err != nil {
		return err
	}
	if err := l.Renew(ctx); err != nil {
		return h.refused(err)
	}
	return h.valid()
}

// Save keeps b as the checkpoint. It counts as a heartbeat.
func (h *Handle) Save(ctx context.Context, b []byte) error {
	if h.under.Lease == nil {
		return ErrNoEntry
	}
	if most := h.largest; len(b) > most {
		return fmt.Errorf("the checkpoint has %d bytes of JSON and MaxCheckpoint is %d: save less, or raise it up to %d", len(b), most, store.MaxCheckpoint)
	}
	ctx, cancel, err := h.checkpoint(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, note := h.last()
	err = h.under.Record.Save(ctx, note, b)
	if err == nil {
		_, note = h.last() // a heartbeat may have come since
		h.count(time.Now(), note)
	}
	return h.refused(err)
}

// Load returns the checkpoint that was saved last; empty: none was.
func (h *Handle) Load(ctx context.Context) ([]byte, error) {
	if h.under.Lease == nil {
		return nil, ErrNoEntry
	}
	ctx, cancel, err := h.checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	b, err := h.under.Lease.Load(ctx)
	return b, h.refused(err)
}

// checkpoint is for work on the checkpoint, which a run that is asked to stop may
// still do for the length of its lease. The context that it returns ends with
// the run and the lease too.
func (h *Handle) checkpoint(ctx context.Context) (context.Context, context.CancelFunc, error) {
	l := h.under.Lease
	if h.over.Err() != nil {
		return nil, nil, errOver
	}
	if !l.Checkpoints() {
		return nil, nil, errNoCheckpoints
	}
	if err := h.leased(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop1 := context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })
	stop2 := context.AfterFunc(h.over, func() { cancel(errOver) })
	stop3 := context.AfterFunc(h.ctx, func() {
		if lease.WaitFor(ctx, ctx, h.under.Length) {
			cancel(context.Cause(h.ctx))
		}
	})
	end := func() { stop1(); stop2(); stop3(); cancel(nil) }
	if h.over.Err() != nil { // meanwhile
		end()
		return nil, nil, errOver
	}
	return ctx, end, nil
}

// refused ends the run after an answer that says that its lease is gone.
func (h *Handle) refused(err error) error {
	if !lease.Definite(err) {
		return err
	}
	err = fmt.Errorf("%w: %w", store.ErrLost, err)
	h.under.Lease.Lose(err)
	return err
}
