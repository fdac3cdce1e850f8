package storetest_test

import (
	"bytes"
	"context"
	"errors"

	"github.com/soloist-go/soloist/store"
)

// forgets saves but the record.
type forgets struct{ *lease }

func (l forgets) Save(ctx context.Context, etag string, record, _ []byte) (store.Revision, error) {
	return l.lease.Write(ctx, etag, record)
}

// keepsForAny asks for no id.
type keepsForAny struct{ *lease }

func (l keepsForAny) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.holder().(store.Checkpointer).Save(ctx, etag, record, checkpoint)
}

func (l keepsForAny) Load(ctx context.Context, etag string) ([]byte, error) {
	return l.holder().(store.Checkpointer).Load(ctx, etag)
}

// savesNews makes no new ETag for what is there already.
type savesNews struct{ *lease }

func (l savesNews) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	old, err := l.lease.Load(ctx, etag)
	if e, readErr := l.store.Read(ctx, l.name); err == nil && readErr == nil && bytes.Equal(old, checkpoint) && bytes.Equal(e.Record, record) {
		return e.Revision, nil
	}
	return l.lease.Save(ctx, etag, record, checkpoint)
}

// nulls finds something where there is nothing.
type nulls struct{ *lease }

func (l nulls) Load(ctx context.Context, etag string) ([]byte, error) {
	checkpoint, err := l.lease.Load(ctx, etag)
	if err == nil && len(checkpoint) == 0 {
		return []byte("null"), nil
	}
	return checkpoint, err
}

// savesOver ignores the ETag.
type savesOver struct{ *lease }

func (l savesOver) Save(ctx context.Context, _ string, record, checkpoint []byte) (store.Revision, error) {
	for {
		stamp, err := l.lease.Save(ctx, l.etag(ctx), record, checkpoint)
		if !errors.Is(err, store.ErrChanged) {
			return stamp, err
		}
	}
}

// empties does on a write what Put Blob does.
type empties struct{ *lease }

func (l empties) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.lease.Save(ctx, etag, record, nil)
}
