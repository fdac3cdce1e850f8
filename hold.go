package soloist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// A cell is one entry of the store as one replica sees it.
type cell struct {
	store  Store
	name   string // app/job
	length time.Duration
	clock  *serviceClock
	dice   *dice
}

// try is how long one call to the store may take: a lease's renewals come at
// thirds of it, so that one that hangs leaves time for another.
func (c *cell) try() time.Duration { return c.length / 6 }

func (c *cell) read(ctx context.Context) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, c.try())
	defer cancel()
	sent := c.clock.elapsed()
	entry, err := c.store.Read(ctx, c.name)
	entry.Stamp, err = stamped(entry.Stamp, err)
	c.clock.observe(sent, entry.Date)
	return entry, err
}

func (c *cell) create(ctx context.Context, record []byte) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.try()) // it may have to make the container first
	defer cancel()
	sent := c.clock.elapsed()
	entry, err := c.store.Create(ctx, c.name, record)
	entry.Stamp, err = stamped(entry.Stamp, err)
	c.clock.observe(sent, entry.Date)
	return entry, err
}

// errNoETag is unclear: something other than the store may have answered, such as
// a proxy, and the call may have been applied or not.
var errNoETag = errors.New("the answer has no ETag: it is not from the store")

// stamped refuses a success without an ETag. It proves neither a claim nor a
// renewal.
func stamped(s Stamp, err error) (Stamp, error) {
	if err == nil && s.ETag == "" {
		return Stamp{}, errNoETag
	}
	return s, err
}

// A hold is one acquisition of a lease, from acquire to release. It may be
// trusted until the lease could run out at the service:
//
//	until = when the last successful renewal was sent + length
//	        - length/100 (the clocks' rates) - length/6 (time to stop)
//
// All three are elapsed time: a step of the wall clock ends no hold, a
// suspension of the machine does, where [Scheduler.Elapsed] counts it.
type hold struct {
	*cell
	book
	lease  Lease
	length time.Duration
	start  time.Duration   // when the acquisition was sent: renewals count from it
	dated  time.Time       // the service's date in its answer; zero: the store tells none
	held   context.Context // ends with the trust
	lost   context.CancelCauseFunc
	stop   func() // ends the renewals, and waits for that
	giveUp func() // ends them: the lease runs out

	announced atomic.Bool // the record says that the run is about to be handed over

	trouble func(error) // is told why calls fail again and again, nil once they do not; nil: nobody is

	renewing chan struct{} // has room for one renewal in flight

	mu      sync.Mutex
	until   time.Duration
	claimed time.Time // as the record tells it
}

// acquire takes the lease if the entry still has etag, whose record is rec. A
// call of unclear outcome is repeated once under the same id, then undone as
// far as possible.
func (c *cell) acquire(ctx context.Context, etag string, rec *Record, length time.Duration) (*hold, error) {
	h := &hold{cell: c, lease: c.store.Lease(c.name, uuid.NewString()), length: length,
		book: newBook(etag, rec), renewing: make(chan struct{}, 1)}
	err := h.take(ctx)
	if err != nil && !definite(err) {
		err = h.take(ctx)
	}
	if err != nil && !definite(err) {
		h.release(ctx)
	}
	return h, err
}

func (h *hold) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	h.start = h.clock.elapsed()
	stamp, err := stamped(h.lease.Acquire(ctx, h.length, h.etag))
	if err != nil {
		return err
	}
	h.clock.observe(h.start, stamp.Date)
	h.until, h.dated = h.start+h.trust(), stamp.Date
	return nil
}

// trust is how long an answer of the service may be trusted, from when its
// request was sent.
func (h *hold) trust() time.Duration { return h.length - h.length/driftShare - h.length/6 }

// definite reports whether err says that the call was not applied and would
// not be if it were repeated.
func definite(err error) bool {
	return errors.Is(err, ErrHeld) || errors.Is(err, ErrChanged) || errors.Is(err, ErrLost) ||
		errors.Is(err, fs.ErrNotExist)
}

// refused reports whether err is an answer that says that the call was not
// applied. One that failed for a missing permission may be applied when it is
// repeated.
func refused(err error) bool { return definite(err) || errors.Is(err, fs.ErrPermission) }

// keep renews the lease at each third of its length until stop. The context
// held ends, with ErrLost, once the lease cannot be trusted any more.
func (h *hold) keep(ctx context.Context) {
	h.held, h.lost = context.WithCancelCause(ctx)
	watch, cancel := context.WithCancel(h.held)
	renewals, giveUp := context.WithCancel(watch)
	h.giveUp = giveUp
	var both sync.WaitGroup
	both.Go(func() { h.watch(watch) })
	both.Go(func() { h.renewals(renewals) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		both.Wait()
	})
}

// lookAgain is how often the deadline is compared with elapsed time, since
// timers stand still while a machine is suspended.
const lookAgain = time.Second

// watch ends the trust in time, however long a renewal hangs.
func (h *hold) watch(ctx context.Context) {
	for ctx.Err() == nil {
		left := h.left()
		if left <= 0 {
			h.lost(errNotRenewed)
			return
		}
		sleep(ctx, min(left, lookAgain))
	}
}

var errNotRenewed = fmt.Errorf("%w: no renewal in time", ErrLost)

func (h *hold) renewals(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, h.untilRenewal())
		if err := h.renewInTime(ctx); err != nil {
			h.lost(err)
			return
		}
	}
}

// untilRenewal is the time to the next third of the lease since the claim, by
// the service's clock: by its own, one that is slow would, after hours, renew
// just after the others have looked whether it still does. The latest reading,
// so that the renewal is never late.
func (h *hold) untilRenewal() time.Duration {
	third := h.length / 3
	h.mu.Lock()
	claimed := h.claimed
	h.mu.Unlock()
	gone := h.clock.elapsed() - h.start
	if _, hi, ok := h.clock.now(); ok && !claimed.IsZero() {
		gone = hi.Sub(claimed)
	}
	wait := third - gone%third
	if wait < third/5 { // the reading went back a little: this one is done
		wait += third
	}
	return min(wait, third+third/5)
}

// renewInTime renews, again and again after a transient error, until it knows,
// the lease can no longer be trusted, or ctx ends.
func (h *hold) renewInTime(ctx context.Context) error {
	for try := 1; ctx.Err() == nil; try++ {
		if h.left() <= 0 {
			return errNotRenewed
		}
		err := h.renew(ctx)
		if ctx.Err() == nil {
			h.tell(try, err)
		}
		if err == nil {
			return nil
		}
		if definite(err) {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		sleep(ctx, h.length/30)
	}
	return nil
}

func (h *hold) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	select {
	case h.renewing <- struct{}{}:
		defer func() { <-h.renewing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	sent := h.clock.elapsed()
	stamp, err := stamped(h.lease.Renew(ctx))
	if err != nil {
		return err
	}
	h.clock.observe(sent, stamp.Date)
	h.extend(sent)
	return nil
}

// tell passes on the outcome of the nth try of a call: one failure is no
// trouble yet.
func (h *hold) tell(try int, err error) {
	if try > 1 && h.trouble != nil && !definite(err) {
		h.trouble(err)
	}
}

// extend moves the deadline forward, counted from when the renewal was sent. An
// answer that is processed after the deadline extends nothing: the lease may have
// expired before the renewal revived it, and a follower may have seen that.
func (h *hold) extend(sent time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clock.elapsed() < h.until {
		h.until = max(h.until, sent+h.trust())
	}
}

// trusted is the instant, in elapsed time, up to which the lease can be trusted.
func (h *hold) trusted() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// left is how long the lease can still be trusted.
func (h *hold) left() time.Duration { return h.trusted() - h.clock.elapsed() }

// expired reports whether the lease cannot be trusted any more. It ends the
// context of the hold then: the goroutine that watches the deadline may be late.
func (h *hold) expired() bool {
	if h.left() <= 0 {
		h.lost(errNotRenewed)
	}
	return h.held.Err() != nil
}

// release is a courtesy: without it the lease runs out. The id was never used
// before and never will be again, so a second call can do no harm.
func (h *hold) release(ctx context.Context) error {
	err := h.releaseOnce(ctx)
	if err != nil && !definite(err) {
		err = h.releaseOnce(ctx)
	}
	return err
}

func (h *hold) releaseOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.try())
	defer cancel()
	return h.lease.Release(ctx)
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
