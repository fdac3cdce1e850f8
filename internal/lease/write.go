package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A Draft changes the record as it was last written.
type Draft func(*store.Record)

// Why a write was not applied, or is not known to have been.
var (
	// ErrNotWritten: the store has refused each sending of a write, which
	// therefore will not be applied later either.
	ErrNotWritten = errors.New("nothing was written")

	// ErrNotEncoded: the record does not fit, so nothing was sent.
	ErrNotEncoded = errors.New("the record cannot be written")

	// ErrNotConfirmed: the caller gave up before it knew whether a write was applied.
	ErrNotConfirmed = errors.New("the write was not confirmed")

	// ErrClosed: the outcome of the run has been written already.
	ErrClosed = errors.New("the run is over")

	// ErrNotReadBack: whether a write was applied is not known.
	ErrNotReadBack = errors.New("reading it back")
)

// WriteConfirmed is for a claim. After an unclear answer it reads who wrote last,
// and sends once more if nobody did.
func (s *Session) WriteConfirmed(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, s.confirmed)
}

// WriteBestEffort is for what others may know: it is sent once.
func (s *Session) WriteBestEffort(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, s.bestEffort)
}

// WriteUntilKnown is for what has to be written if it can be: it sends until the
// outcome is known. A lease that ran out while nobody took it is renewed first.
// A checkpoint that is not nil is written in the same call. ErrLost or ErrChanged:
// another replica has the entry.
func (s *Session) WriteUntilKnown(ctx context.Context, draft Draft, checkpoint []byte) error {
	return s.write(ctx, draft, checkpoint, func(ctx context.Context, p *page) error {
		return s.untilKnown(ctx, p, func() {})
	})
}

// OutcomePatience is for how many lengths of the lease a replica that cannot write
// an outcome goes on renewing: a short outage of writes loses no outcome.
const OutcomePatience = 4

// WriteOutcome is WriteUntilKnown for the outcome of a run that has returned. A
// replica that cannot write it for longer stops renewing, whatever the errors are:
// other replicas could not run the job as long as the lease lasts. It is the last
// write: a Save by a goroutine that the run has left behind gets ErrClosed.
func (s *Session) WriteOutcome(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, func(ctx context.Context, p *page) error {
		s.ledger.closed = true
		begin := s.client.Clock.Elapsed()
		return s.untilKnown(ctx, p, func() {
			if s.client.Clock.Elapsed()-begin >= OutcomePatience*s.Length {
				s.giveUp()
			}
		})
	})
}

// write makes the next record by draft and sends it.
func (s *Session) write(ctx context.Context, draft Draft, checkpoint []byte, send func(context.Context, *page) error) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	next := s.ledger.rec.Clone()
	draft(&next)
	next.Writer = rand.Text()
	b, err := next.Encode()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotEncoded, err)
	}
	s.ledger.rec = next
	return send(ctx, &page{next.Writer, b, checkpoint})
}

func (s *Session) takeTurn(ctx context.Context) error {
	select {
	case s.ledger.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := context.Cause(ctx) // it may have ended while others had their turn
	if s.ledger.closed {
		err = ErrClosed
	}
	if err != nil {
		s.endTurn()
	}
	return err
}

func (s *Session) endTurn() { <-s.ledger.turn }

// once sends a page. Where the answer is lost, the next call finds out.
func (s *Session) once(ctx context.Context, p *page) error {
	ctx, cancel := context.WithTimeout(ctx, s.client.CallTimeout())
	defer cancel()
	s.ledger.remember(p)
	sent := s.client.Clock.Elapsed()
	stamp, err := stamped(s.put(ctx, p))
	if err != nil {
		s.ledger.unclear, s.ledger.doubt = true, s.ledger.doubt || !refused(err)
		return err
	}
	s.client.Clock.Observe(sent, stamp.Date)
	s.ledger.moved(stamp.ETag, p.nonce)
	return nil
}

func (s *Session) put(ctx context.Context, p *page) (store.Revision, error) {
	if p.checkpoint == nil {
		return s.lease.Write(ctx, s.ledger.etag, p.record)
	}
	return s.lease.(store.Checkpointer).Save(ctx, s.ledger.etag, p.record, p.checkpoint)
}

func (s *Session) bestEffort(ctx context.Context, p *page) error {
	if _, err := s.catchUp(ctx, p.nonce); err != nil {
		return err
	}
	return s.once(ctx, p)
}

func (s *Session) confirmed(ctx context.Context, p *page) error {
	for last := false; ; last = true {
		err := s.once(ctx, p)
		if err == nil {
			return nil
		}
		mine, rerr := s.readBack(ctx, p.nonce)
		switch {
		case mine:
			return nil
		case errors.Is(rerr, store.ErrChanged):
			return fmt.Errorf("%w: %w", store.ErrChanged, err)
		case rerr != nil:
			return fmt.Errorf("%v, and %w: %w", err, ErrNotReadBack, rerr)
		case refused(err) && !s.ledger.doubt:
			return fmt.Errorf("%w: %w", ErrNotWritten, err)
		case last || refused(err):
			return err
		}
	}
}

// untilKnown sends until the outcome is known, and calls failed each time that it
// is not.
func (s *Session) untilKnown(ctx context.Context, p *page, failed func()) error {
	pause := s.client.Backoff(s.Length / 30)
	for try := 1; ; try++ {
		known, err := s.settle(ctx, p)
		s.tell(try, err)
		if known {
			return err
		}
		failed()
		if Sleep(ctx, pause.Next()); ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx), ErrNotConfirmed)
		}
	}
}

// settle sends a page and finds out what became of it. It returns false if that
// is not known, or not decided yet.
func (s *Session) settle(ctx context.Context, p *page) (known bool, err error) {
	mine, err := s.catchUp(ctx, p.nonce)
	if mine {
		return true, nil
	}
	if err != nil {
		return Definite(err), err
	}
	etag := s.ledger.etag
	if err = s.once(ctx, p); err == nil {
		return true, nil
	}
	mine, rerr := s.readBack(ctx, p.nonce)
	switch {
	case mine:
		return true, nil
	case errors.Is(rerr, store.ErrChanged):
		return true, fmt.Errorf("%w: %w", store.ErrChanged, err)
	case errors.Is(rerr, fs.ErrNotExist):
		return true, rerr
	case rerr == nil && errors.Is(err, store.ErrLost):
		if err = s.Renew(ctx); err == nil {
			err = s.once(ctx, p)
			return err == nil, err
		}
		return Definite(err), err
	}
	return rerr == nil && Definite(err) && s.ledger.etag == etag, err
}

// catchUp learns the ETag where the last answer was lost, and whether that was
// to the write with the nonce.
func (s *Session) catchUp(ctx context.Context, nonce string) (mine bool, err error) {
	if !s.ledger.unclear {
		return false, nil
	}
	return s.readBack(ctx, nonce)
}

// readBack reports whether the write with the nonce was the last one. If an
// earlier one of this session was, whose answer was lost, its ETag is the one to
// go on from. ErrChanged: somebody else has written.
func (s *Session) readBack(ctx context.Context, nonce string) (mine bool, err error) {
	entry, err := s.client.Read(ctx)
	if err != nil {
		return false, err
	}
	last := writer(entry.Record)
	switch {
	case entry.ETag == s.ledger.etag: // an unclear write may still be applied
		s.ledger.unclear = false
	case s.ledger.wrote(entry.Record):
		s.ledger.moved(entry.ETag, last)
	default:
		return false, store.ErrChanged
	}
	return last == nonce, nil
}

// Record is the one that was last written, or perhaps written. It is for the
// goroutine that writes claim and outcome, as ETag is, while no run goes on.
func (s *Session) Record() store.Record { return s.ledger.rec }

// ETag is that of the last write whose answer is known, at first of the entry as
// it was acquired.
func (s *Session) ETag() string { return s.ledger.etag }

// Claimed sets the instant of the claim in the record, from which renewals count.
func (s *Session) Claimed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = at
}
