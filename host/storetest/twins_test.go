package storetest_test

import (
	"context"
	"sync"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// A store without a cache passes: what one instance writes, the other sees.
func TestTwoInstances(t *testing.T) {
	storetest.Test(t, twoOf(func(m *local.Memory) store.Store { return m }))
}

// robbed is a pair of which one instance does not see the leases of the other.
func robbed() storetest.Harness {
	h := virtual(func() store.Store { return new(local.Memory) })
	h.Two = func(*testing.T) (one, other store.Store) {
		place := new(local.Memory)
		return place, mutate(place, robs, "acquire")
	}
	return h
}

// remembers keeps the record, the ETag and the checkpoint that it has read until it writes.
type remembers struct {
	*mutant
	seen *sync.Map // entries by name
}

func newRemembers(m *local.Memory) store.Store {
	var seen, loaded sync.Map
	return remembers{mutate(m, func(ctx context.Context, c *call) (store.Revision, error) {
		if c.op == "load" {
			r, err := c.run(ctx)
			old, _ := loaded.LoadOrStore(c.name, c.checkpoint)
			c.checkpoint = old.([]byte)
			return r, err
		}
		defer seen.Delete(c.name)
		loaded.Delete(c.name)
		return c.run(ctx)
	}, "write", "save", "load"), &seen}
}

func (s remembers) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	if err != nil {
		return e, err
	}
	old, _ := s.seen.LoadOrStore(name, e)
	e.Record, e.ETag = append([]byte{}, old.(store.Entry).Record...), old.(store.Entry).ETag
	return e, nil
}

// recalls remembers the documents, listings and logs that it has read, and for its conditional breaks the first
// ETags. What it writes itself it knows.
type recalls struct {
	*local.Memory
	documents, entries, logs, etags *sync.Map // by name
}

func newRecalls(m *local.Memory) store.Store {
	return recalls{m, new(sync.Map), new(sync.Map), new(sync.Map), new(sync.Map)}
}

func (s recalls) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d, err := s.Memory.ReadDocument(ctx, name, etag)
	if err != nil || etag != "" {
		return d, err
	}
	old, _ := s.documents.LoadOrStore(name, d)
	return old.(store.Document), nil
}

func (s recalls) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	s.documents.Delete(name)
	return s.Memory.WriteDocument(ctx, name, etag, body)
}

func (s recalls) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return s.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		old, _ := s.entries.LoadOrStore(name, e)
		known := old.(store.Entry)
		known.Checkpoint = e.Checkpoint
		return f(name, known)
	})
}

func (s recalls) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	b, err := s.Memory.ReadLog(ctx, name, offset, n)
	old, _ := s.logs.LoadOrStore(name, b)
	return old.([]byte), err
}

func (s recalls) Append(ctx context.Context, name string, size int64, b []byte) error {
	s.logs.Delete(name)
	return s.Memory.Append(ctx, name, size, b)
}

func (s recalls) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	if err == nil {
		s.etags.LoadOrStore(name, e.ETag)
	}
	return e, err
}

func (s recalls) BreakUnchanged(ctx context.Context, name, etag string) error {
	if seen, known := s.etags.Load(name); known && seen == etag {
		return s.Break(ctx, name, 0)
	}
	return s.Memory.BreakUnchanged(ctx, name, etag)
}
