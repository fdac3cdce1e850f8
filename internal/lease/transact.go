package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// ErrCommitted: a transaction of the run has written its outcome.
var ErrCommitted = fmt.Errorf("%w: a transaction has written its outcome", ErrClosed)

// errFound is an ErrCommitted that no caller of WriteIn has been told: the answer was lost.
var errFound = fmt.Errorf("%w, as was found out later", ErrCommitted)

// errNotCalled is a defect of the store.
var errNotCalled = errors.New("the store has committed a transaction without the record of the run")

// An undecided write was made in a transaction that may have been committed.
type undecided struct {
	nonce string
	rec   record.Record
	last  bool // it is the outcome
}

// Transacts reports whether the store can write a record in a transaction of the caller's.
func (w *writes) Transacts() bool {
	_, ok := w.lease.(store.Transactor)
	return ok
}

// WriteIn writes the record, and a checkpoint that is not nil, in one transaction with what f does in it: both or
// neither. f may take as long as the run has time, since the turn is taken after it. last says that the record has the
// outcome of the run: then nothing may follow it.
//
// After an unclear answer the next write decides: if it is applied, on the ETag that the transaction was to replace, the
// transaction can no longer be committed. WriteIn makes that write itself, with the record as it was. An error that wraps
// ErrNotConfirmed says that it could not; WriteOutcome then decides.
func (w *writes) WriteIn(ctx context.Context, draft Draft, checkpoint []byte, last bool, f func(tx any) error) error {
	if err := w.learn(ctx); err != nil {
		if last && errors.Is(err, errFound) { // what an earlier call could not find out
			return nil
		}
		return err
	}
	var p *page // nil: nothing was sent
	var was record.Record
	var sent time.Duration
	defer func() {
		if p != nil {
			w.end()
		}
	}()
	answer, err := w.lease.(store.Transactor).Transact(ctx, func(tx any, write store.TransactionWrite) error {
		if err := f(tx); err != nil {
			return err
		}
		if err := w.take(ctx); err != nil {
			return err
		}
		was = w.rec.Clone()
		next := was.Clone()
		draft(&next)
		made, err := w.page(next, checkpoint)
		if err == nil && last && was.Run.Status != event.Running { // it has stalled, and others act on that
			err = ErrClosed
		}
		if err == nil && w.unclear { // reading it back may need a connection that this transaction has
			err = fmt.Errorf("%w: the answer to the write before was lost", ErrNotWritten)
		}
		if err != nil {
			w.draft(was)
			w.end()
			return err
		}
		p, sent = made, w.client.Clock.Elapsed()
		w.remember(p, sent)
		ctx, cancel := context.WithTimeout(ctx, w.patience(checkpoint != nil))
		defer cancel()
		return write(ctx, w.last.ETag, p.record, p.checkpoint)
	})
	answer, err = stamped(answer, err)
	switch {
	case p == nil:
		return cmp.Or(err, errNotCalled)
	case err == nil:
		w.client.Clock.Observe(sent, answer.Date)
		w.trust.applied(w.moved(answer, p.nonce))
		if last {
			w.closed = ErrCommitted
		}
		return nil
	}
	w.open = undecided{p.nonce, w.rec, last}
	w.draft(was)
	w.unclear, w.doubt = true, true
	switch known := w.decide(ctx); {
	case errors.Is(known, ErrCommitted):
		return nil
	case known == nil:
		return fmt.Errorf("the transaction was not committed: %w", err)
	default:
		return errors.Join(err, known)
	}
}

// learn finds out what became of a write whose answer was lost, so that a transaction need not. Of two transactions with
// the outcome only one may be undecided.
func (w *writes) learn(ctx context.Context) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.end()
	if w.open.last {
		return w.decide(ctx)
	}
	_, err := w.catchUp(ctx, "")
	return err
}

// decide writes the record as it was before a transaction that is undecided. ErrCommitted: it was committed before. The
// caller has the turn.
func (w *writes) decide(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Length) // what the caller of a run gives up is decided all the same
	defer cancel()
	p, err := w.page(w.rec.Clone(), nil)
	if err != nil {
		return err
	}
	err = w.untilKnown(ctx, p, func(error) {})
	if !w.open.last { // a checkpoint: the write that comes next goes on from what it finds
		w.open = undecided{}
	}
	return err
}

// committed notes that the entry was left by a transaction that was undecided.
func (w *writes) committed() error {
	w.draft(w.open.rec)
	if w.open.last {
		w.closed = errFound
	}
	w.open = undecided{}
	return errFound
}
