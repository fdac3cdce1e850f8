package soloist

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A cell is one entry of the store as one replica sees it.
type cell struct {
	store  Store
	name   string // app/job
	length time.Duration
	clock  *serviceClock
}

// try is how long one call to the store may take: a lease's renewals come at
// thirds of it, so that one that hangs leaves time for another.
func (c *cell) try() time.Duration { return c.length / 6 }

func (c *cell) read(ctx context.Context) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, c.try())
	defer cancel()
	sent := time.Now()
	entry, err := c.store.Read(ctx, c.name)
	c.clock.observe(sent, entry.Date)
	return entry, err
}

func (c *cell) create(ctx context.Context, record []byte) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.try()) // it may have to make the container first
	defer cancel()
	sent := time.Now()
	entry, err := c.store.Create(ctx, c.name, record)
	c.clock.observe(sent, entry.Date)
	return entry, err
}

// A hold is one acquisition of a lease, from acquire to release. It may be
// trusted until the lease could run out at the service:
//
//	until = when the last successful renewal was sent + length
//	        - length/100 (the clocks' rates) - length/6 (time to stop)
type hold struct {
	*cell
	lease  Lease
	length time.Duration
	start  time.Time // when the acquisition was sent: renewals count from it
	stop   func()    // ends the renewals

	renewing sync.Mutex // one renewal in flight

	mu    sync.Mutex
	etag  string
	until time.Time
	timer *time.Timer // ends the trust at until, however long a renewal hangs
}

// acquire takes the lease if the entry still has etag. A call of unclear
// outcome is repeated once under the same id, then undone as far as possible.
func (c *cell) acquire(ctx context.Context, etag string, length time.Duration) (*hold, error) {
	h := &hold{cell: c, lease: c.store.Lease(c.name, uuid.NewString()), length: length, etag: etag}
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
	h.start = time.Now()
	stamp, err := h.lease.Acquire(ctx, h.length, h.etag)
	if err != nil {
		return err
	}
	h.clock.observe(h.start, stamp.Date)
	h.until = trust(h.start, h.length)
	return nil
}

func trust(sent time.Time, length time.Duration) time.Time {
	return sent.Add(length - length/driftShare - length/6)
}

// definite reports whether err says that the call was not applied and would
// not be if it were repeated.
func definite(err error) bool {
	return errors.Is(err, ErrHeld) || errors.Is(err, ErrChanged) || errors.Is(err, ErrLost) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist)
}

// keep renews the lease at each third of its length, and calls lost with
// ErrLost once it cannot be trusted any more. stop ends that and waits.
func (h *hold) keep(ctx context.Context, lost context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	h.timer = time.AfterFunc(time.Until(h.until), func() {
		lost(fmt.Errorf("%w: no renewal in time", ErrLost))
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for next := h.start; ctx.Err() == nil; {
			for !next.After(time.Now()) {
				next = next.Add(h.length / 3)
			}
			sleep(ctx, time.Until(next))
			if err := h.renewInTime(ctx); err != nil {
				lost(err)
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
		h.timer.Stop()
	})
}

// renewInTime renews, again and again after a transient error, until it knows,
// the lease can no longer be trusted, or ctx ends.
func (h *hold) renewInTime(ctx context.Context) error {
	for ctx.Err() == nil {
		if !time.Now().Before(h.trusted()) {
			return fmt.Errorf("%w: no renewal in time", ErrLost)
		}
		err := h.renew(ctx)
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
	h.renewing.Lock()
	defer h.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	sent := time.Now()
	stamp, err := h.lease.Renew(ctx)
	if err != nil {
		return err
	}
	h.clock.observe(sent, stamp.Date)
	h.extend(trust(sent, h.length))
	return nil
}

// extend moves the deadline, never back: a reply says when its own request was
// sent.
func (h *hold) extend(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(h.until) {
		h.until = until
		h.timer.Reset(time.Until(until))
	}
}

func (h *hold) trusted() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// write replaces the record. After an unclear answer it reads who wrote last,
// and sends once more if nobody did.
func (h *hold) write(ctx context.Context, rec *Record) error {
	rec.Writer = rand.Text()
	return h.send(ctx, rec, 2)
}

func (h *hold) send(ctx context.Context, rec *Record, tries int) error {
	b, err := rec.encode()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		werr := h.sendOnce(ctx, b)
		if werr == nil {
			return nil
		}
		entry, err := h.read(ctx)
		if err != nil {
			return fmt.Errorf("%v, and reading it back: %w", werr, err)
		}
		if wrote(entry.Record, rec.Writer) {
			h.etag = entry.ETag
			return nil
		}
		if entry.ETag != h.etag {
			return fmt.Errorf("%w: %w", ErrChanged, werr)
		}
		if try == tries || definite(werr) {
			return werr
		}
	}
}

func (h *hold) sendOnce(ctx context.Context, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	sent := time.Now()
	stamp, err := h.lease.Write(ctx, h.etag, b)
	if err != nil {
		return err
	}
	h.clock.observe(sent, stamp.Date)
	h.etag = stamp.ETag
	return nil
}

// finish writes the outcome of a run, for as long as that can be: a lease that
// ran out while nobody took it is renewed first. ErrLost or ErrChanged:
// another replica has settled the tick.
func (h *hold) finish(ctx context.Context, rec *Record) error {
	rec.Writer = rand.Text()
	pause := newBackoff(h.length / 30)
	for {
		err := h.send(ctx, rec, 1)
		if errors.Is(err, ErrLost) {
			if err = h.renew(ctx); err == nil {
				err = h.send(ctx, rec, 1)
			}
		}
		if err == nil || definite(err) {
			return err
		}
		if sleep(ctx, pause.next()); ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
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

// wrote reports whether record b is the write that had the nonce.
func wrote(b []byte, nonce string) bool {
	var r struct{ Writer string }
	return json.Unmarshal(b, &r) == nil && r.Writer == nonce
}
