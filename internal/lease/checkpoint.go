package lease

import (
	"context"
	"errors"

	"github.com/soloist-go/soloist/store"
)

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
	ctx, cancel := context.WithTimeout(ctx, min(w.client.CallTimeout(), 2*w.patience()))
	defer cancel()
	if _, err := w.catchUp(ctx, ""); err != nil {
		return nil, err
	}
	return w.lease.(store.Checkpointer).Load(ctx, w.etag)
}
