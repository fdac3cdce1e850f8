package local

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/store"
)

// handle is the lease of one name under one id.
type handle struct {
	update   update
	name, id string
}

var (
	_ store.Lease        = handle{}
	_ store.Checkpointer = handle{}
)

func (h handle) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return h.do(ctx, "acquire the lease of", func(e *entry, now time.Time) error {
		if err := checkLength(d); err != nil {
			return err
		}
		if e.ETag != etag {
			return store.ErrChanged
		}
		return e.Lease.acquire(h.id, d, now)
	})
}

func (h handle) Renew(ctx context.Context) (store.Revision, error) {
	return h.do(ctx, "renew the lease of", func(e *entry, now time.Time) error {
		return e.Lease.renew(h.id, now)
	})
}

func (h handle) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return h.do(ctx, "write", func(e *entry, now time.Time) error {
		if err := checkRecord(record); err != nil {
			return err
		}
		if err := e.guard(h.id, etag, now); err != nil {
			return err
		}
		e.write(record)
		return nil
	})
}

func (h handle) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return h.do(ctx, "save", func(e *entry, now time.Time) error {
		if err := errors.Join(checkRecord(record), checkCheckpoint(len(checkpoint))); err != nil {
			return err
		}
		if err := e.guard(h.id, etag, now); err != nil {
			return err
		}
		e.write(record)
		e.Checkpoint = content(checkpoint)
		return nil
	})
}

func (h handle) Load(ctx context.Context, etag string) ([]byte, error) {
	var checkpoint []byte
	_, err := h.do(ctx, "load the checkpoint of", func(e *entry, now time.Time) error {
		checkpoint = []byte(e.Checkpoint)
		return e.guard(h.id, etag, now)
	})
	if err != nil {
		return nil, err
	}
	return checkpoint, nil
}

func (h handle) Release(ctx context.Context) error {
	_, err := h.do(ctx, "release the lease of", func(e *entry, _ time.Time) error {
		return e.Lease.release(h.id)
	})
	return err
}

func (h handle) do(ctx context.Context, verb string, f change) (store.Revision, error) {
	e, now, err := h.update.do(ctx, verb, h.name, func(e *entry, now time.Time) error {
		if err := checkID(h.id); err != nil {
			return err
		}
		return f(e, now)
	})
	if err != nil {
		return store.Revision{}, err
	}
	return store.Revision{ETag: e.ETag, Date: now}, nil
}
