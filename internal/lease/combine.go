package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A [store.Combiner] applies two steps at one instant. The two calls could have come to the same, so no state of an entry is
// new, and neither is an order of events. What is new is that after an unclear answer both steps may have been applied, or
// may be applied yet. HoldWith and writeRelease say what they do about that.

// errNotApplied says that the call was not applied when the entry was read after it.
var errNotApplied = errors.New("the lease was not acquired together with the first write")

// Combines reports whether the store takes two steps in one call.
func (c *Client) Combines() bool {
	_, ok := c.Store.Lease(c.Name, uuid.NewString()).(store.Combiner)
	return ok
}

// HoldWith is Hold that writes the first record in the same call, over a store that combines. It reports whether the record
// is written; if not, it has at most acquired the lease. The record in the entry has to show no run that may be under way.
//
// After an unclear answer it reads the entry, as WriteConfirmed does. If the nonce shows that the call was applied, the lease
// is ours too, and is trusted from the sending of the call on. If the entry is unchanged, Hold acquires the lease under
// another id. If the first call arrives later, it is refused: the entry is leased, and later its ETag is another one, since
// Release sees to that. If it arrives just before that acquisition, that one is refused, and one more read finds the record.
// With an error that wraps ErrNotReadBack a claim may be in the entry whose run is not begun: MustExpire.
//
// The end of ctx does not end the call, since the claim could then not be taken back.
func HoldWith(ctx context.Context, c *Client, etag string, rec *record.Record, length time.Duration, draft Draft,
	trouble func(error), emit func(event.Event)) (s *Session, written bool, err error) {
	sending := context.WithoutCancel(ctx)
	s = newSession(c, c.Store.Lease(c.Name, uuid.NewString()), etag, rec, length)
	switch err = s.acquireWrite(sending, draft); {
	case errors.Is(err, errNotApplied), errors.Is(err, ErrNotEncoded):
		alone, err := Hold(ctx, c, etag, rec, length, trouble, emit)
		if s.doubt {
			alone.unclaimed = etag
		}
		if err == nil || !s.doubt {
			return alone, false, err
		}
		switch mine, rerr := s.readBack(sending, s.Record().Writer); {
		case mine:
		case Definite(err) && rerr != nil && !Definite(rerr):
			return s, false, fmt.Errorf("%v, and %w: %w", err, ErrNotReadBack, rerr)
		default:
			return alone, false, err
		}
	case err != nil:
		return s, false, err
	}
	s.news = news{trouble, emit}
	s.keep(sending)
	return s, true, nil
}

// acquireWrite sends one call, and finds out what became of it.
func (s *Session) acquireWrite(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, func(ctx context.Context, p *page) error {
		s.start = s.client.Clock.Elapsed()
		p.send = func(ctx context.Context, etag string) (store.Revision, error) {
			answer, err := s.lease.(store.Combiner).AcquireWrite(ctx, s.Length, etag, p.record)
			s.trust.until = s.start + trusted(s.Length) // also if a read shows that it was applied
			return answer, err
		}
		err := s.onceBriefly(ctx, p)
		switch {
		case err == nil || Definite(err):
			return err
		case refused(err):
			return fmt.Errorf("%w: %w", errNotApplied, err)
		}
		mine, rerr := s.readBack(ctx, p.nonce)
		switch {
		case mine:
			return nil
		case rerr == nil:
			return fmt.Errorf("%w: %w", errNotApplied, err)
		case Definite(rerr):
			return rerr
		}
		return fmt.Errorf("%v, and %w: %w", err, ErrNotReadBack, rerr)
	})
}

// onceBriefly is once that gives up after Brief: a run that beats is trusted for the length of a beat from the sending on.
func (s *Session) onceBriefly(ctx context.Context, p *page) error {
	ctx, cancel := context.WithTimeout(ctx, s.Brief)
	defer cancel()
	return s.once(ctx, p)
}

// Release is that of the grant. If the entry still has the ETag with which an earlier call may yet write a claim, whose
// run would not begin, it first writes the record as it is.
func (w *writes) Release(ctx context.Context) error {
	if w.unclaimed != "" && w.Revision().ETag == w.unclaimed {
		_ = w.WriteBestEffort(context.WithoutCancel(ctx), func(*record.Record) {})
	}
	return w.grant.Release(ctx)
}

// writeRelease writes the outcome and releases the lease, if the store combines that. It sends one call, and reports whether it
// was applied. If not, the outcome is written as without it; if the call arrives later, its ETag may be another one by then.
// If it arrives before the next write, that one is refused and the nonce shows that the outcome is written; the release
// after it then gets ErrLost.
//
// Renewals wait meanwhile: one after the release would look like a loss. They go on if the call was not applied, until it
// arrives later.
func (w *writes) writeRelease(ctx context.Context, p *page) bool {
	combiner, combines := w.lease.(store.Combiner)
	if !combines || w.unclear || w.open.last || p.runs { // a transaction may be committed yet; see MustExpire
		return false
	}
	select {
	case w.renewing <- struct{}{}:
		defer func() { <-w.renewing }()
	default: // one is in flight: the outcome does not wait for it
		return false
	}
	p.send = func(ctx context.Context, etag string) (store.Revision, error) {
		return combiner.WriteRelease(ctx, etag, p.record)
	}
	err := w.once(ctx, p)
	p.send = nil
	if err != nil && !refused(err) {
		// The page was sent in no other call: if the entry shows it, the lease is released too.
		if mine, _ := w.readBack(ctx, p.nonce); mine {
			err = nil
		}
	}
	if w.released = err == nil; w.released {
		w.giveUp()
	}
	w.leaving.Store(!w.released && !refused(err))
	return w.released
}
