package lease

import (
	"context"
	"errors"

	"github.com/soloist-go/soloist/store"
)

// Checkpoints reports whether the entry can keep one.
func (s *Session) Checkpoints() bool {
	_, ok := s.lease.(store.Checkpointer)
	return ok
}

// Load reads the checkpoint, again and again until the outcome is known.
func (s *Session) Load(ctx context.Context) ([]byte, error) {
	if err := s.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer s.endTurn()
	pause := s.client.Backoff(s.Length / 30)
	for try := 1; ; try++ {
		b, err := s.loadOnce(ctx)
		if errors.Is(err, store.ErrChanged) && !s.ledger.unclear { // perhaps by a write of ours that came late
			s.ledger.unclear = true
			b, err = s.loadOnce(ctx)
		}
		if errors.Is(err, store.ErrTooLarge) { // the store has answered, and will say the same again
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

func (s *Session) loadOnce(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.client.CallTimeout())
	defer cancel()
	if _, err := s.catchUp(ctx, ""); err != nil {
		return nil, err
	}
	return s.lease.(store.Checkpointer).Load(ctx, s.ledger.etag)
}
