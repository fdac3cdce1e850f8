package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A Draft changes the record as it was last written into the record to be written next.
type Draft func(*store.Record)

// Why a write was not applied, or is not known to have been applied.
var (
	// ErrNotWritten: the store has refused the write each time that it was sent, or it was not sent.
	// So it will not be applied late either.
	ErrNotWritten = errors.New("nothing was written")

	// ErrNotEncoded: the record is too large, so nothing was sent.
	ErrNotEncoded = errors.New("the record cannot be written")

	// ErrNotConfirmed: the caller gave up before it knew whether the write was applied.
	ErrNotConfirmed = errors.New("the write was not confirmed")

	// ErrClosed: the outcome of the run is written already, and nothing may follow it.
	ErrClosed = errors.New("the run is over")

	// ErrNotReadBack: neither the write nor the read after it has been answered.
	ErrNotReadBack = errors.New("reading it back")

	// errNotTaken: the store answers reads and fails each write of the outcome.
	errNotTaken = errors.New("the store is read and does not take the outcome")
)

// WriteConfirmed is for a claim, which must be in the store before its run starts, and for
// other writes whose caller can give up. After an unclear answer it reads who wrote last,
// and sends the write once more if the entry is unchanged.
func (s *Session) WriteConfirmed(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, s.confirmed)
}

// WriteBestEffort is for news that other replicas can do without. It is sent once.
func (s *Session) WriteBestEffort(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, s.bestEffort)
}

// WriteOrForget is WriteBestEffort for news that counts as reported once it was sent: if it was not, no later
// write holds it.
func (s *Session) WriteOrForget(ctx context.Context, draft Draft) error {
	var was store.Record
	noted := func(r *store.Record) {
		was = r.Clone()
		draft(r)
	}
	return s.write(ctx, noted, nil, func(ctx context.Context, p *page) error {
		err := s.bestEffort(ctx, p)
		if errors.Is(err, ErrNotWritten) {
			s.draft(was)
		}
		return err
	})
}

// WriteUntilKnown is for what has to be written if at all possible: it sends until the
// outcome is known or ctx ends. If the lease has expired and no other replica has taken it,
// it renews the lease first. A checkpoint that is not nil is written in the same call.
// ErrLost or ErrChanged: another replica has the entry.
func (s *Session) WriteUntilKnown(ctx context.Context, draft Draft, checkpoint []byte) error {
	return s.write(ctx, draft, checkpoint, func(ctx context.Context, p *page) error {
		return s.untilKnown(ctx, p, func(error) {})
	})
}

// OutcomePatience is for how many lengths of the lease a replica that cannot write an
// outcome goes on renewing. So a short outage of writes loses no outcome, unless the run beats: a beat
// is a write too, so others replace a holder whose writes fail for the length of a beat.
const OutcomePatience = 4

// WriteOutcome is WriteUntilKnown for the outcome of a run that has returned. After
// OutcomePatience it gives up the renewals, whatever the errors are, and revives the
// lease only once after it has expired: as long as the lease lasts no other replica can
// run the job. If the store then answers every read for two more lengths of the lease and
// still takes no write, it gives up the write too, with errNotTaken; time in which the
// process was suspended does not count. If no other replica is
// up, this one has to go on with the job itself, as another one would have done. A missing
// permission is no reason to give up. It is the last write: a goroutine that the run has
// left behind gets ErrClosed from Save.
func (s *Session) WriteOutcome(ctx context.Context, draft Draft) error {
	return s.write(ctx, draft, nil, func(ctx context.Context, p *page) error {
		s.ledger.closed = true
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		renewed := s.client.Clock.Elapsed() + OutcomePatience*s.Length
		// From this time on each read has been answered, and no write was refused for
		// lack of the permission.
		answered, tried := renewed, s.client.Clock.Elapsed()
		return s.untilKnown(ctx, p, func(err error) {
			now := s.client.Clock.Elapsed()
			// No try and its pause take that long: the process was suspended, and asked nothing.
			suspended := now-tried > maxPause+s.Length
			tried = now
			if now >= renewed {
				s.ledger.gaveUp = true
				s.giveUp()
			}
			// Either the read after the write was not answered, or this replica may not
			// write at all, so it could not go on with a claim either.
			if s.ledger.unclear || errors.Is(err, fs.ErrPermission) || suspended {
				answered = max(answered, now)
			}
			if now-answered >= 2*s.Length {
				cancel(errNotTaken)
			}
		})
	})
}

// write makes the next record by draft and sends it. The ledger keeps the record even if
// the write fails: it may have been applied, so what is written next must include it.
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
	s.draft(next)
	return send(ctx, newPage(&next, b, checkpoint))
}

// draft notes the record that is written next. It has the turn, and mu is for those who ask for the record without it.
func (s *Session) draft(next store.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.rec = next
}

// applied notes that the write with the nonce was applied, and the answer that showed it.
func (s *Session) applied(answer store.Revision, nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trust.applied(s.client.Clock.Elapsed(), s.ledger.moved(answer, nonce))
}

// takeTurn waits until no other write is under way, or ctx ends.
func (s *Session) takeTurn(ctx context.Context) error {
	select {
	case s.ledger.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := context.Cause(ctx) // ctx may have ended while other writes had their turn
	if s.ledger.closed {
		err = ErrClosed
	}
	if err != nil {
		s.endTurn()
	}
	return err
}

// endTurn lets the next write begin.
func (s *Session) endTurn() { <-s.ledger.turn }

// once sends a page. If the answer is lost, the next call of readBack finds out.
func (s *Session) once(ctx context.Context, p *page) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout(p))
	defer cancel()
	sent := s.client.Clock.Elapsed()
	s.ledger.remember(p, sent)
	stamp, err := Stamped(s.put(ctx, p))
	if err != nil {
		s.ledger.unclear, s.ledger.doubt = true, s.ledger.doubt || !refused(err)
		return err
	}
	s.client.Clock.Observe(sent, stamp.Date)
	s.applied(stamp, p.nonce)
	return nil
}

// timeout returns how long the sending of a page may take. As long as a run that beats is trusted there is little time
// for each write, also for its outcome: others replace a holder that is silent. One with a checkpoint has a
// little more, until the next beat is due.
func (s *Session) timeout(p *page) time.Duration {
	if p.checkpoint == nil {
		return s.patience()
	}
	return min(s.client.CallTimeout(), 2*s.patience())
}

// patience returns how long a call may take that others wait for in turn. Once the trust has ended there is time: what is
// still to be written is the outcome.
func (s *Session) patience() time.Duration {
	if s.Left() <= 0 {
		return s.client.CallTimeout()
	}
	return s.CallTimeout()
}

// put sends the page on the ETag of the write before. The store refuses it if anything
// else has been written since.
func (s *Session) put(ctx context.Context, p *page) (store.Revision, error) {
	if p.checkpoint == nil {
		return s.lease.Write(ctx, s.ledger.etag, p.record)
	}
	return s.lease.(store.Checkpointer).Save(ctx, s.ledger.etag, p.record, p.checkpoint)
}

// bestEffort sends a page once. If the last answer was lost, it learns the ETag first.
func (s *Session) bestEffort(ctx context.Context, p *page) error {
	_, err := s.catchUp(ctx, p.nonce)
	if err = cmp.Or(err, context.Cause(ctx)); err != nil { // nothing was sent
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	return s.once(ctx, p)
}

// confirmed sends a page at most twice. Its error says what is known of the write:
// ErrNotWritten, that the store has refused each sending; ErrNotReadBack, nothing; any
// other error, that it was not applied when the entry was read.
func (s *Session) confirmed(ctx context.Context, p *page) error {
	for last := false; ; last = true {
		err := s.once(ctx, p)
		if err == nil {
			return nil
		}
		mine, rerr := s.readBack(ctx, p.nonce)
		switch {
		// The write was applied; only its answer was lost.
		case mine:
			return nil
		case errors.Is(rerr, store.ErrChanged):
			return fmt.Errorf("%w: %w", store.ErrChanged, err)
		case rerr != nil:
			return fmt.Errorf("%v, and %w: %w", err, ErrNotReadBack, rerr)
		// The store refused this sending, and there is none before it that may still arrive.
		case refused(err) && !s.ledger.doubt:
			return fmt.Errorf("%w: %w", ErrNotWritten, err)
		// A second sending that is not known to be applied is enough: nothing runs.
		case last || refused(err):
			return err
		}
	}
}

// untilKnown sends until the outcome is known, and calls failed after each try that leaves
// it unknown.
func (s *Session) untilKnown(ctx context.Context, p *page, failed func(error)) error {
	pause := s.client.Backoff(cmp.Or(s.client.Beat, s.Length) / 30)
	for try := 1; ; try++ {
		known, err := s.settle(ctx, p)
		s.tell(try, err)
		if known {
			return err
		}
		failed(err)
		if Sleep(ctx, pause.Next()); ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx), ErrNotConfirmed)
		}
	}
}

// settle is send, and writes also after the lease has expired, if no other replica has taken
// the entry: the entry is as we left it, so none has written, and a renewal that succeeds
// proves that none has leased it either.
func (s *Session) settle(ctx context.Context, p *page) (known bool, err error) {
	known, err = s.send(ctx, p)
	if !known || !errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrChanged) || s.ledger.revived {
		return known, err
	}
	if err = s.Renew(ctx); err == nil {
		s.ledger.revived = s.ledger.gaveUp
		err = s.once(ctx, p)
		return err == nil, err
	}
	return Definite(err), err
}

// send sends a page once and finds out what became of it. It returns false if that is
// not known yet, or may still change: the caller then tries again. ErrLost alone: the lease
// has ended, and no other replica has written.
func (s *Session) send(ctx context.Context, p *page) (known bool, err error) {
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
		return true, err
	}
	// A refusal is final if the page was sent with the ETag that the entry has now. If
	// readBack has found a newer ETag, left by an earlier write of this session, the page
	// is sent again with that one.
	return rerr == nil && Definite(err) && s.ledger.etag == etag, err
}

// catchUp learns the current ETag if the last answer was lost, and reports whether the
// entry was left by the write with the nonce.
func (s *Session) catchUp(ctx context.Context, nonce string) (mine bool, err error) {
	if !s.ledger.unclear {
		return false, nil
	}
	return s.readBack(ctx, nonce)
}

// readBack reads the entry and reports whether the write with the nonce left it. If another
// write of this session did, whose answer was lost, the next write goes on from its ETag.
// ErrChanged: something else has written.
func (s *Session) readBack(ctx context.Context, nonce string) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	entry, err := s.client.Read(ctx)
	if err != nil {
		return false, err
	}
	last := writer(entry.Record)
	switch {
	case entry.ETag == s.ledger.etag: // no write since; a write in doubt may still be applied
		s.ledger.unclear = false
	case s.ledger.wrote(entry.Record):
		s.applied(entry.Revision, last)
	default:
		return false, store.ErrChanged
	}
	return last == nonce, nil
}

// Sent returns the nonces of the records of this session that the entry may hold. No other goroutine may use the session.
func (s *Session) Sent() []string { return s.ledger.sent() }

// Record returns the record that was last written, or perhaps written. A beat may be under way, which
// changes nothing of it but its writer.
func (s *Session) Record() store.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.rec
}

// ETag returns the ETag of the last write whose answer is known, at first the ETag of the
// entry as it was acquired.
func (s *Session) ETag() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.etag
}

// WrittenAt returns the service's date in the answer that has shown ETag. Zero: nothing
// was written, or the store gives no dates.
func (s *Session) WrittenAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.date
}

// RenewFrom sets the time of the claim in the record. Renewals come at thirds of the lease
// after it.
func (s *Session) RenewFrom(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = at
}

// Reopen lets another claim follow the outcome that was written. What the run before has
// left behind writes nothing more: its own context has ended.
func (s *Session) Reopen() {
	s.ledger.turn <- struct{}{}
	s.ledger.closed = false
	s.endTurn()
}
