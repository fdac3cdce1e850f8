package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// desk is a Memory whose documents have a fault: read and write stand before those of
// the Memory. Nil: no fault.
type desk struct {
	*local.Memory
	read  func(ctx context.Context, m *local.Memory, name, etag string) (store.Document, error)
	write func(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error)
}

func (d desk) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	if d.read == nil {
		return d.Memory.ReadDocument(ctx, name, etag)
	}
	return d.read(ctx, d.Memory, name, etag)
}

func (d desk) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if d.write == nil {
		return d.Memory.WriteDocument(ctx, name, etag, body)
	}
	return d.write(ctx, d.Memory, name, etag, body)
}

// desks is a harness for a store with such a fault.
func desks(d desk) storetest.Harness {
	return virtual(func() store.Store { d.Memory = new(local.Memory); return d })
}

// overwrites replaces the document whatever its ETag is.
func overwrites(ctx context.Context, m *local.Memory, name, _ string, body []byte) (store.Revision, error) {
	for {
		d, err := m.ReadDocument(ctx, name, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return store.Revision{}, err
		}
		r, err := m.WriteDocument(ctx, name, d.ETag, body)
		if !errors.Is(err, store.ErrChanged) {
			return r, err
		}
	}
}

// looksFirst compares, and then writes in a second step.
func looksFirst(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	d, err := m.ReadDocument(ctx, name, "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return store.Revision{}, err
	}
	if d.ETag != etag {
		return store.Revision{}, store.ErrChanged
	}
	time.Sleep(time.Millisecond) // of the bubble
	return overwrites(ctx, m, name, etag, body)
}

// transfers sends the document also to a reader who has it.
func transfers(ctx context.Context, m *local.Memory, name, _ string) (store.Document, error) {
	return m.ReadDocument(ctx, name, "")
}

// writesChanges makes no new ETag for the same document.
func writesChanges(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	d, err := m.ReadDocument(ctx, name, "")
	if err == nil && d.ETag == etag && bytes.Equal(d.Body, body) {
		return d.Revision, nil
	}
	return m.WriteDocument(ctx, name, etag, body)
}

// recites remembers the documents that it has read.
type recites struct {
	*local.Memory
	seen *sync.Map // by name
}

func (s recites) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d, err := s.Memory.ReadDocument(ctx, name, etag)
	if err != nil || etag != "" {
		return d, err
	}
	old, _ := s.seen.LoadOrStore(name, d)
	return old.(store.Document), nil
}

func (s recites) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	s.seen.Delete(name)
	return s.Memory.WriteDocument(ctx, name, etag, body)
}
