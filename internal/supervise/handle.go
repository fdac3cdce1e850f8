package supervise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A Handle is one try as the user's function sees it: the methods of the public Run
// call the Handle's. The user's goroutines and the watchdog may call them at the
// same time, also after the function has returned; then they return an error.
type Handle struct {
	Run event.Run

	emit    func(event.Event)
	under   *Conditions
	limits  limits
	detail  *detail
	ctx     context.Context // the context of the user's function
	over    context.Context // ends when the user's function has returned
	endOver func()          // ends over; called once, by try
	start   time.Duration   // elapsed time at the start; the timeout counts from it

	// alarm wakes the watchdog at a heartbeat that came after the record had
	// announced a stall: followers poll ten times a second until it is taken back.
	alarm chan struct{} // room for one

	mu       sync.Mutex
	stopSeen bool
	stopAt   time.Duration // elapsed time when the stop was first seen; Grace counts from it
	beat     time.Time     // when the last heartbeat came, at first the start; by the monotonic clock, so that a suspension of the machine is no stall
	note     string        // of the last heartbeat
}

// limits are what a task sets to a try.
type limits struct {
	timeout    time.Duration // zero: none
	checkpoint int           // the largest, in bytes
}

var (
	// ErrNoEntry is what a run without a lease gets from Save and Load.
	ErrNoEntry = errors.New("a run without a lease has no checkpoint")
	// errBeside is what a run in parallel with others gets from them: the entry has one checkpoint.
	errBeside = errors.New("the runs of a backfill that are beside each other have no checkpoint: order it without parallel")
	// errOver is what a method returns after the user's function has returned.
	errOver = lease.ErrClosed

	// errNoCheckpoints is for a Store of the user's own without the optional
	// interface.
	errNoCheckpoints = errors.New("the store keeps no checkpoints: its Lease does not implement store.Checkpointer")
	// errNoTransactions is for a store that is no database.
	errNoTransactions = errors.New("the store has no transactions: its Lease does not implement store.Transactor, as that of a store in PostgreSQL does")
)

// Around returns the ticks around the run's.
func (h *Handle) Around() Around { return h.under.Around }

// valid returns why the run has to end, or that it is over, or nil. Each method asks
// it first, so a goroutine that the user's function has left behind can no longer
// change the record or send heartbeats.
func (h *Handle) valid() error {
	switch {
	case h.over.Err() != nil:
		return errOver
	case h.ctx.Err() != nil:
		return context.Cause(h.ctx)
	}
	return h.Leased()
}

// Leased returns an error that wraps ErrLost if the lease is lost, or if it cannot be
// trusted at this instant. It compares the deadline itself: the timer of the deadline
// may be late, for example after a suspension.
func (h *Handle) Leased() error {
	l := h.under.Lease
	if l == nil {
		return nil
	}
	if l.Left() <= 0 {
		l.Lose(lease.ErrNotRenewed)
		return lease.ErrNotRenewed
	}
	return context.Cause(l.Context())
}

// ended reports whether the run has to end. The watchdog asks it before it calls a
// run stalled, since a lost lease is the true cause. It asks the lease as well as the
// run's context: when the trust ends, the contexts that depend on it end one after
// the other, in any order, and the run's own may be the last.
func (h *Handle) ended() bool {
	return h.ctx.Err() != nil || h.under.Lease != nil && h.under.Lease.Context().Err() != nil
}

// Heartbeat records that the run makes progress, and how far it is. It returns why
// the run has to end, if it has to; such a heartbeat does not count. The time is read
// first: the check of the lease must not make the heartbeat look later than it was.
func (h *Handle) Heartbeat(note string) error {
	at := time.Now()
	if err := h.valid(); err != nil {
		return err
	}
	h.count(at, note)
	h.emit(event.Event{Kind: event.Heartbeat, Run: h.Run, Note: note})
	return nil
}

// count takes in a heartbeat. Save calls it too.
func (h *Handle) count(at time.Time, note string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = instant.Later(h.beat, at)
	h.note = note // as long as it is: Encode shortens it for the record
	if h.under.told.announced.Load() {
		select {
		case h.alarm <- struct{}{}:
		default: // the watchdog has not taken the last alarm yet
		}
	}
}

// last returns the time and the note of the last heartbeat.
func (h *Handle) last() (beat time.Time, note string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.beat, h.note
}

// Remaining is how long the run may go on for certain, even if no renewal succeeds
// from now on: the least of what the lease, the timeout and a stop leave. Now is read
// first, so that a delay in between makes the answer smaller and never larger.
func (h *Handle) Remaining() time.Duration {
	now := h.under.Elapsed()
	if h.valid() != nil {
		return 0
	}
	left := h.beforeStop(now)
	if h.limits.timeout > 0 {
		left = min(left, h.start+h.limits.timeout-now)
	}
	if h.under.Lease != nil {
		left = min(left, h.under.Lease.Left())
	}
	return max(0, left)
}

// beforeStop is how long a stop leaves the run: Grace from the stop on, or from the
// deadline of the caller's context if it has one. Without either it is very long. A
// sum that would overflow counts as very long too.
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

// stopped returns the elapsed time at which the stop was first seen. If nothing has
// seen it before, that is now.
func (h *Handle) stopped(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopSeen {
		h.stopSeen, h.stopAt = true, now
	}
	return h.stopAt
}

// stopAfterGrace ends the run's context with ErrStopped when Grace has passed since
// a stop, or sooner if no caller waits for the run. The caller must call cancel when the
// function has returned; cancel waits for what a stop has begun, so that nothing of a
// try outlives it.
func (h *Handle) stopAfterGrace(end context.CancelCauseFunc) (cancel func()) {
	running, returned := context.WithCancel(context.Background())
	done := make(chan struct{})
	undo := context.AfterFunc(h.under.Stop, func() {
		defer close(done)
		wait, over := context.WithTimeout(running, h.beforeStop(h.under.Elapsed()))
		defer over()
		if h.under.Alone == nil || !h.under.Alone(wait) {
			<-wait.Done()
		}
		if running.Err() == nil {
			end(ErrStopped)
		}
	})
	return func() {
		returned()
		if !undo() {
			<-done
		}
	}
}

// Check asks the store, by a renewal, whether the run still has its lease. An error
// that wraps ErrLost: it has not. Any other error: it is not known. After the answer
// it checks the deadline again, since the call may have taken long.
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

// Save keeps b as the checkpoint, in one write together with the record, so that
// the store refuses it without the lease. It counts as a heartbeat once it is written.
func (h *Handle) Save(ctx context.Context, b []byte) error {
	return h.save(ctx, b, func(ctx context.Context, note string) error { return h.refused(h.under.Record.Save(ctx, note, b)) })
}

// SaveIn is Save in one transaction with what f does in it.
func (h *Handle) SaveIn(ctx context.Context, b []byte, f func(tx any) error) error {
	return h.save(ctx, b, func(ctx context.Context, note string) error {
		if !h.under.Lease.Transacts() {
			return errNoTransactions
		}
		return h.within(f, func(f func(tx any) error) error { return h.under.Record.SaveIn(ctx, note, b, f) })
	})
}

// FinishIn writes that the run has succeeded, in one transaction with what f does in it.
func (h *Handle) FinishIn(ctx context.Context, f func(tx any) error) error {
	if h.under.Lease == nil {
		return ErrNoEntry
	}
	ctx, cancel, err := h.checkpoint(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	switch {
	case !h.under.Lease.Transacts():
		return errNoTransactions
	case h.under.told.finished.Load():
		return errOver
	}
	err = h.within(f, func(f func(tx any) error) error { return h.under.Record.FinishIn(ctx, f) })
	if err == nil {
		h.under.told.finished.Store(true)
	}
	return err
}

// within makes a call with f. What f says of its own work, such as fs.ErrNotExist, says nothing about the lease.
func (h *Handle) within(f func(tx any) error, call func(f func(tx any) error) error) error {
	var own error
	err := call(func(tx any) error { own = f(tx); return own })
	if own != nil {
		return own
	}
	return h.refused(err)
}

// save keeps b by a call of write.
func (h *Handle) save(ctx context.Context, b []byte, write func(ctx context.Context, note string) error) error {
	if h.under.Lease == nil {
		return ErrNoEntry
	}
	// Without this limit a large body would hold up renewals on a slow line.
	if most := h.limits.checkpoint; len(b) > most {
		return fmt.Errorf("the checkpoint has %d bytes of JSON and MaxCheckpoint is %d: save less, or raise it up to %d", len(b), most, store.MaxCheckpoint)
	}
	ctx, cancel, err := h.checkpoint(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	_, note := h.last()
	sent := h.under.Elapsed()
	// The record has room for a note, so the last one is written again: Save has
	// none of its own.
	err = write(ctx, note)
	if err == nil {
		// The run may have sent a heartbeat while the write was under way.
		_, note = h.last()
		h.count(time.Now(), note)
		h.emit(event.Event{Kind: event.Saved, Run: h.Run, Note: note, Took: h.under.Elapsed() - sent})
	}
	return err
}

// Load returns the checkpoint that was saved last. It is empty if none was saved.
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
	if err != nil {
		return nil, h.refused(err)
	}
	// The machine may have been suspended while the answer was under way, and another
	// replica may have saved since.
	if err := h.Leased(); err != nil {
		return nil, err
	}
	return b, nil
}

// checkpoint prepares a call of Save or Load. It returns a context that ends with
// the lease and with the run. Once the run is asked to end, by a timeout for example,
// that context lives for one more length of the lease: a run that is ending should
// still be able to save what it has done.
func (h *Handle) checkpoint(ctx context.Context) (context.Context, context.CancelFunc, error) {
	l := h.under.Lease
	switch {
	case h.over.Err() != nil:
		return nil, nil, errOver
	case h.under.Beside:
		return nil, nil, errBeside
	}
	if !l.Checkpoints() {
		return nil, nil, errNoCheckpoints
	}
	if err := h.Leased(); err != nil {
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
	// The run may have returned between the first check and AfterFunc.
	if h.over.Err() != nil {
		end()
		return nil, nil, errOver
	}
	return ctx, end, nil
}

// refused passes on the error of a call to the store. If the store has said that the
// lease is gone, it ends the run at once instead of at the next renewal.
func (h *Handle) refused(err error) error {
	if !lease.Definite(err) {
		return err
	}
	err = fmt.Errorf("%w: %w", store.ErrLost, err)
	h.under.Lease.Lose(err)
	return err
}
