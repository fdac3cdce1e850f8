package lease

import (
	"context"
	"errors"

	"github.com/soloist-go/soloist/store"
)

// Checkpoints reports whether the store can keep a checkpoint with the record.
func (s *Session) Checkpoints() bool {
	_, ok := s.lease.(store.Checkpointer)
	return ok
}

// Load reads the checkpoint and repeats the call until its outcome is known. Each try takes a
// turn as a write does, since it has to name the ETag, which a write changes.
func (s *Session) Load(ctx context.Context) ([]byte, error) {
	pause := s.client.Backoff(s.Length / 30)
	for try := 1; ; try++ {
		b, err := s.tryLoad(ctx)
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		if errors.Is(err, store.ErrTooLarge) { // the store has answered, and would answer the same again
			s.tell(try, nil)
			return nil, err
		}
		s.tell(try, err)
		if err == nil || Definite(err) {
			return b, err
		}
		if Sleep(ctx, pause.Next()); ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// tryLoad takes a turn for one try.
func (s *Session) tryLoad(ctx context.Context) ([]byte, error) {
	if err := s.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer s.endTurn()
	b, err := s.loadOnce(ctx)
	// A write of ours that seemed refused may have been applied late. Reading the
	// entry back shows whether the change is ours.
	if errors.Is(err, store.ErrChanged) && !s.ledger.unclear {
		s.ledger.unclear = true
		b, err = s.loadOnce(ctx)
	}
	return b, err
}

// loadOnce makes one call. If the answer to the last write was lost, it first learns the
// ETag that the entry has now.
func (s *Session) loadOnce(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, min(s.client.CallTimeout(), 2*s.patience()))
	defer cancel()
	if _, err := s.catchUp(ctx, ""); err != nil {
		return nil, err
	}
	return s.lease.(store.Checkpointer).Load(ctx, s.ledger.etag)
}
