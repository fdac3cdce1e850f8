package supervise

import (
	"context"
	"sync/atomic"
	"time"
)

// A Lease is what a run needs of its [lease.Session]. The interface is small so
// that a test of the watchdog needs no store, and so that a run cannot release.
type Lease interface {
	Context() context.Context // ends when the lease can no longer be trusted
	Left() time.Duration      // how long that takes if no renewal succeeds
	// Expired is Left() <= 0, and ends Context if so. Left itself would not: the timer of
	// the deadline may be late.
	Expired() bool
	// Lose ends Context at once: the store has said that the lease is gone.
	Lose(cause error)
	// GiveUp ends the renewals, so that the lease expires although the run may
	// still go on. It is for a run that has stalled.
	GiveUp()
	// Renew asks the store now, instead of at the next third of the lease.
	Renew(ctx context.Context) error
	// Checkpoints reports whether Load, and Save of the Record, can work.
	Checkpoints() bool
	Load(ctx context.Context) ([]byte, error)
	// Transacts reports whether SaveIn and FinishIn of the Record can work.
	Transacts() bool
}

// A Record informs the other replicas how a run is going, through the record in the
// store. Each of the first three methods sends one write and does not repeat it: the run must
// not wait for news that the others can do without.
type Record interface {
	Stopping(yes bool) error // whether followers should poll often, since the run is about to end
	Progress(beat time.Time, note string) error
	Stalled(reason string) error                                    // the outcome, written while the run may still go on
	Save(ctx context.Context, note string, checkpoint []byte) error // repeated until its outcome is known

	// These are in one transaction with what f does in it: a checkpoint, or the outcome of the run, which has succeeded.
	SaveIn(ctx context.Context, note string, checkpoint []byte, f func(tx any) error) error
	FinishIn(ctx context.Context, f func(tx any) error) error
}

// Conditions are what a run depends on: the replica that may stop, and the lease
// that may be lost. The runner makes one value for each attempt, and the tries of
// the attempt share it.
type Conditions struct {
	Stop  context.Context // ends when the replica stops or steps down; the run may then go on for Grace
	Until time.Time       // when the call ends that runs it; zero: it has no end
	Grace time.Duration
	Alone func(context.Context) bool // called at the stop: no other replica is up, so Grace is not needed; nil: it is

	// Cancelled ends when an operator cancels the run or a newer tick replaces it; nil: neither can. Barred returns why the
	// run must not begin after all, nil if it may; a nil Barred never does.
	Cancelled context.Context
	Barred    func() error

	Lease  Lease  // nil for a job that runs on each replica
	Beside bool   // other runs share the lease, and so the entry, which has one checkpoint: neither Save nor Load is possible
	Record Record // nil if Lease is nil

	Length   time.Duration // of the lease
	Approach time.Duration // until all followers have read that the run is about to be handed over; they read at each third of the lease
	Elapsed  func() time.Duration
	Now      func() time.Time // the service's time, as far as it is known, for people; nil: it is not

	Around Around

	told told
}

// What is told of an attempt outlives a try.
type told struct {
	// announced is what the record says about the hand-over, as far as this replica knows: the next try may have to take
	// it back.
	announced atomic.Bool

	// finished is set once FinishIn has written the outcome: whatever the run returns after that, it has succeeded.
	finished atomic.Bool
}

// Around are the ticks before and after a run's.
type Around struct {
	Previous time.Time // the last tick that had succeeded when the run was claimed; zero: none
	Next     time.Time // the next one by the schedule; zero: none
}

// callTimeout is how long one call to the store may take. It is also the margin
// between the end of the trust and the end of the lease, so it is how long a run
// may take to return before the process has to end.
func (c *Conditions) callTimeout() time.Duration { return c.Length / 6 }

// cancelled returns why the run is cancelled; nil: it is not.
func (c *Conditions) cancelled() error {
	if c.Cancelled == nil {
		return nil
	}
	return context.Cause(c.Cancelled)
}

// live returns the context that ends with the trust in the lease, or when the run is cancelled or replaced.
// The caller calls end when it needs the context no more.
func (c *Conditions) live() (ctx context.Context, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(c.held())
	if c.Cancelled == nil {
		return ctx, cancel
	}
	undo := context.AfterFunc(c.Cancelled, func() { cancel(context.Cause(c.Cancelled)) })
	return ctx, func(cause error) {
		undo()
		cancel(cause)
	}
}

// asking returns ctx, whose Err asks the lease too: the timer that ends ctx may be late, as after a
// suspension of the machine, and who looks at Err between two effects need not wait for it.
func (c *Conditions) asking(ctx context.Context) context.Context {
	if c.Lease == nil {
		return ctx
	}
	return leased{ctx, c.Lease}
}

// leased is the context of a run under a lease.
type leased struct {
	context.Context
	lease Lease
}

// Err ends the context if the lease cannot be trusted any more. A context that has ended costs no look at the clock.
func (l leased) Err() error {
	if err := l.Context.Err(); err != nil {
		return err
	}
	l.lease.Expired()
	return l.Context.Err()
}

// held returns the context that ends with the trust in the lease. Without a lease
// it never ends; a stop must not end it, since Grace comes first.
func (c *Conditions) held() context.Context {
	if c.Lease == nil {
		return context.WithoutCancel(c.Stop)
	}
	return c.Lease.Context()
}
