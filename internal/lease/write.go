package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Draft changes the record as it was last written into the record to be written next.
type Draft func(*record.Record)

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

// The writes are what a session makes under its lease.
type writes struct {
	*grant
	*ledger
}

// WriteConfirmed is for a claim, which must be in the store before its run starts, and for
// other writes whose caller can give up. After an unclear answer it reads who wrote last,
// and sends the write once more if the entry is unchanged.
func (w *writes) WriteConfirmed(ctx context.Context, draft Draft) error {
	return w.write(ctx, draft, nil, w.confirmed)
}

// WriteBestEffort is for news that other replicas can do without. It is sent once.
func (w *writes) WriteBestEffort(ctx context.Context, draft Draft) error {
	return w.write(ctx, draft, nil, w.bestEffort)
}

// WriteOrForget is WriteBestEffort for news that counts as reported once it was sent: if it was not, no later
// write holds it.
func (w *writes) WriteOrForget(ctx context.Context, draft Draft) error {
	var was record.Record
	noted := func(r *record.Record) {
		was = r.Clone()
		draft(r)
	}
	return w.write(ctx, noted, nil, func(ctx context.Context, p *page) error {
		err := w.bestEffort(ctx, p)
		if errors.Is(err, ErrNotWritten) && w.closed == nil {
			w.draft(was)
		}
		return err
	})
}

// WriteUntilKnown is for what has to be written if at all possible: it sends until the
// outcome is known or ctx ends. If the lease has expired and no other replica has taken it,
// it renews the lease first. A checkpoint that is not nil is written in the same call.
// ErrLost or ErrChanged: another replica has the entry.
func (w *writes) WriteUntilKnown(ctx context.Context, draft Draft, checkpoint []byte) error {
	return w.write(ctx, draft, checkpoint, func(ctx context.Context, p *page) error {
		return w.untilKnown(ctx, p, func(error) {})
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
// left behind gets ErrClosed from Save. ErrCommitted: WriteIn had written the outcome.
//
// Leaves reports whether the lease is released after that record in any case: then the same call may release it.
func (w *writes) WriteOutcome(ctx context.Context, draft Draft, leaves func(*record.Record) bool) error {
	return w.write(ctx, draft, nil, func(ctx context.Context, p *page) error {
		w.closed = ErrClosed
		if leaves(&w.rec) && w.writeRelease(ctx, p) {
			return nil
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		renewed := w.client.Clock.Elapsed() + OutcomePatience*w.Length
		// From this time on each read has been answered, and no write was refused for
		// lack of the permission.
		answered, tried := renewed, w.client.Clock.Elapsed()
		return w.untilKnown(ctx, p, func(err error) {
			now := w.client.Clock.Elapsed()
			// No try and its pause take that long: the process was suspended, and asked nothing.
			suspended := now-tried > maxPause+w.Length
			tried = now
			if now >= renewed {
				w.gaveUp = true
				w.giveUp()
			}
			// Either the read after the write was not answered, or this replica may not
			// write at all, so it could not go on with a claim either.
			if w.unclear || errors.Is(err, fs.ErrPermission) || suspended {
				answered = max(answered, now)
			}
			if now-answered >= 2*w.Length {
				cancel(errNotTaken)
			}
		})
	})
}

// write makes the next record by draft and sends it.
func (w *writes) write(ctx context.Context, draft Draft, checkpoint []byte, send func(context.Context, *page) error) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.end()
	next := w.rec.Clone()
	draft(&next)
	p, err := w.page(next, checkpoint)
	if err != nil {
		return err
	}
	return send(ctx, p)
}

// once sends a page on the ETag of the write before. The store refuses it if anything
// else has been written since. If the answer is lost, the next call of readBack finds out.
func (w *writes) once(ctx context.Context, p *page) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience(p.checkpoint != nil))
	defer cancel()
	sent := w.client.Clock.Elapsed()
	w.remember(p, sent)
	var stamp store.Revision
	var err error
	switch {
	case p.send != nil:
		stamp, err = p.send(ctx, w.last.ETag)
	case p.checkpoint == nil:
		stamp, err = w.lease.Write(ctx, w.last.ETag, p.record)
	default:
		stamp, err = w.lease.(store.Checkpointer).Save(ctx, w.last.ETag, p.record, p.checkpoint)
	}
	stamp, err = stamped(stamp, err)
	if err != nil {
		w.unclear, w.doubt = true, w.doubt || !refused(err)
		return err
	}
	w.client.Clock.Observe(sent, stamp.Date)
	w.trust.applied(w.moved(stamp, p.nonce))
	return nil
}

// bestEffort sends a page once. If the last answer was lost, it learns the ETag first.
func (w *writes) bestEffort(ctx context.Context, p *page) error {
	_, err := w.catchUp(ctx, p.nonce)
	if err = cmp.Or(err, context.Cause(ctx)); err != nil { // nothing was sent
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	return w.once(ctx, p)
}

// confirmed sends a page at most twice. Its error says what is known of the write:
// ErrNotWritten, that the store has refused each sending; ErrNotReadBack, nothing; any
// other error, that it was not applied when the entry was read.
func (w *writes) confirmed(ctx context.Context, p *page) error {
	for last := false; ; last = true {
		err := w.once(ctx, p)
		if err == nil {
			return nil
		}
		mine, rerr := w.readBack(ctx, p.nonce)
		switch {
		// The write was applied; only its answer was lost.
		case mine:
			return nil
		case errors.Is(rerr, store.ErrChanged):
			return fmt.Errorf("%w: %w", store.ErrChanged, err)
		case rerr != nil:
			return fmt.Errorf("%v, and %w: %w", err, ErrNotReadBack, rerr)
		// The store refused this sending, and there is none before it that may still arrive.
		case refused(err) && !w.doubt:
			return fmt.Errorf("%w: %w", ErrNotWritten, err)
		// A second sending that is not known to be applied is enough: nothing runs.
		case last || refused(err):
			return err
		}
	}
}

// untilKnown sends until the outcome is known, and calls failed after each try that leaves
// it unknown.
func (w *writes) untilKnown(ctx context.Context, p *page, failed func(error)) error {
	pause := w.client.Backoff(cmp.Or(w.client.Beat, w.Length) / 30)
	for try := 1; ; try++ {
		known, err := w.settle(ctx, p)
		w.tell(try, err)
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
func (w *writes) settle(ctx context.Context, p *page) (known bool, err error) {
	known, err = w.send(ctx, p)
	if !known || !errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrChanged) || w.revived {
		return known, err
	}
	if err = w.Renew(ctx); err == nil {
		w.revived = w.gaveUp
		err = w.once(ctx, p)
		return err == nil, err
	}
	return Definite(err), err
}

// send sends a page once and finds out what became of it. It returns false if that is
// not known yet, or may still change: the caller then tries again. ErrLost alone: the lease
// has ended, and no other replica has written.
func (w *writes) send(ctx context.Context, p *page) (known bool, err error) {
	mine, err := w.catchUp(ctx, p.nonce)
	if mine {
		return true, nil
	}
	if err != nil {
		return Definite(err) || errors.Is(err, ErrCommitted), err
	}
	etag := w.last.ETag
	if err = w.once(ctx, p); err == nil {
		return true, nil
	}
	mine, rerr := w.readBack(ctx, p.nonce)
	switch {
	case mine:
		return true, nil
	case errors.Is(rerr, store.ErrChanged):
		return true, fmt.Errorf("%w: %w", store.ErrChanged, err)
	case errors.Is(rerr, fs.ErrNotExist), errors.Is(rerr, ErrCommitted):
		return true, rerr
	case rerr == nil && errors.Is(err, store.ErrLost):
		return true, err
	}
	// A refusal is final if the page was sent with the ETag that the entry has now. If
	// readBack has found a newer ETag, left by an earlier write of this session, the page
	// is sent again with that one.
	return rerr == nil && Definite(err) && w.last.ETag == etag, err
}

// catchUp learns the current ETag if the last answer was lost, and reports whether the
// entry was left by the write with the nonce.
func (w *writes) catchUp(ctx context.Context, nonce string) (mine bool, err error) {
	if !w.unclear {
		return false, nil
	}
	return w.readBack(ctx, nonce)
}

// readBack reads the entry and reports whether the write with the nonce left it. If another
// write of this session did, whose answer was lost, the next write goes on from its ETag.
// ErrChanged: something else has written.
func (w *writes) readBack(ctx context.Context, nonce string) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience(false))
	defer cancel()
	entry, err := w.client.Read(ctx)
	if err != nil {
		return false, err
	}
	last := writer(entry.Record)
	switch {
	case entry.ETag == w.last.ETag: // no write since; a write in doubt may still be applied
		w.unclear = false
	case w.wrote(entry.Record):
		w.trust.applied(w.moved(entry.Revision, last))
		if last == w.open.nonce {
			return false, w.committed()
		}
	default:
		return false, store.ErrChanged
	}
	return last == nonce, nil
}

// Checkpoints reports whether the store can keep a checkpoint with the record.
func (w *writes) Checkpoints() bool {
	_, ok := w.lease.(store.Checkpointer)
	return ok
}

// Load reads the checkpoint and repeats the call until its outcome is known. Each try takes a
// turn as a write does, since it has to name the ETag, which a write changes.
func (w *writes) Load(ctx context.Context) ([]byte, error) {
	pause := w.client.Backoff(w.Length / 30)
	for try := 1; ; try++ {
		b, err := w.tryLoad(ctx)
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		if errors.Is(err, store.ErrTooLarge) { // the store has answered, and would answer the same again
			w.tell(try, nil)
			return nil, err
		}
		w.tell(try, err)
		if err == nil || Definite(err) {
			return b, err
		}
		if Sleep(ctx, pause.Next()); ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// tryLoad takes a turn for one try.
func (w *writes) tryLoad(ctx context.Context) ([]byte, error) {
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	defer w.end()
	b, err := w.loadOnce(ctx)
	// A write of ours that seemed refused may have been applied late. Reading the
	// entry back shows whether the change is ours.
	if errors.Is(err, store.ErrChanged) && !w.unclear {
		w.unclear = true
		b, err = w.loadOnce(ctx)
	}
	return b, err
}

// loadOnce makes one call. If the answer to the last write was lost, it first learns the
// ETag that the entry has now.
func (w *writes) loadOnce(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience(true))
	defer cancel()
	if _, err := w.catchUp(ctx, ""); err != nil {
		return nil, err
	}
	return w.lease.(store.Checkpointer).Load(ctx, w.last.ETag)
}
