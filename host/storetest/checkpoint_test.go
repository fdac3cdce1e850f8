package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// forgets saves but the record.
type forgets struct{ *lease }

func (l forgets) Save(ctx context.Context, etag string, record, _ []byte) (store.Revision, error) {
	return l.lease.Write(ctx, etag, record)
}

// halves saves but the checkpoint.
type halves struct{ *lease }

func (l halves) Save(ctx context.Context, etag string, _, checkpoint []byte) (store.Revision, error) {
	e, err := l.store.Read(ctx, l.name)
	if err != nil {
		return store.Revision{}, err
	}
	return l.lease.Save(ctx, etag, e.Record, checkpoint)
}

// empties does on a write what Put Blob does.
type empties struct{ *lease }

func (l empties) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.lease.Save(ctx, etag, record, nil)
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

// loadsOver ignores the ETag.
type loadsOver struct{ *lease }

func (l loadsOver) Load(ctx context.Context, _ string) ([]byte, error) {
	return l.lease.Load(ctx, l.etag(ctx))
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

// texts keeps what is text.
type texts struct{ *lease }

func (l texts) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.lease.Save(ctx, etag, record, []byte(strings.ToValidUTF8(string(checkpoint), "?")))
}

// clips cuts what is too long in silence.
type clips struct{ *lease }

func (l clips) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.lease.Save(ctx, etag, record, checkpoint[:min(len(checkpoint), store.MaxCheckpoint)])
}

// aside keeps checkpoints beside the entries, under a label of its own, and
// does so before it asks whether it may.
type aside struct {
	*lease
	label string
}

func (l aside) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	l.store.shelf.Store(l.label, checkpoint)
	return l.lease.Write(ctx, etag, record)
}

func (l aside) Load(ctx context.Context, etag string) ([]byte, error) {
	if _, err := l.lease.Load(ctx, etag); err != nil {
		return nil, err
	}
	checkpoint, _ := l.store.shelf.Load(l.label)
	b, _ := checkpoint.([]byte)
	return b, nil
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

// conjures makes the entry that it should save to.
type conjures struct{ *lease }

func (l conjures) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if e, err := l.store.Create(ctx, l.name, record); err == nil {
		return e.Revision, nil
	}
	return l.lease.Save(ctx, etag, record, checkpoint)
}
