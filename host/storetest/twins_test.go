package storetest_test

import (
	"context"
	"sync"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// Each test that needs two instances fails where one of them remembers what it has read.
func TestTwoInstancesThatRemember(t *testing.T) {
	h := virtual(func() store.Store { return new(local.Memory) })
	h.Two = func(*testing.T) (store.Store, store.Store) {
		one := new(local.Memory)
		return one, remembers{one, new(sync.Map)}
	}
	h.Differences = map[string]string{}
	for _, test := range []string{"Record/twins", "Keep/twins", "Document/twins", "Log/twins", "List/twins", "BreakUnchanged/twins", "Twins/lease"} {
		h.Differences[test] = "an instance remembers"
	}
	storetest.Test(t, h)
}

// remembers keeps the first answer to each read, and goes by it.
type remembers struct {
	*local.Memory
	answers *sync.Map
}

func first[T any](s remembers, key string, now T, err error) (T, error) {
	if err != nil {
		return now, err
	}
	old, _ := s.answers.LoadOrStore(key, now)
	return old.(T), nil
}

func (s remembers) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	return first(s, "entry "+name, e, err)
}

func (s remembers) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return s.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		e, _ = first(s, "listed "+name, e, nil)
		return f(name, e)
	})
}

func (s remembers) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d, err := s.Memory.ReadDocument(ctx, name, etag)
	return first(s, "document "+name, d, err)
}

func (s remembers) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	b, err := s.Memory.ReadLog(ctx, name, offset, n)
	return first(s, "log "+name, b, err)
}

func (s remembers) BreakUnchanged(ctx context.Context, name, etag string) error {
	if e, err := s.Read(ctx, name); err == nil && e.ETag == etag {
		return s.Break(ctx, name, 0)
	}
	return s.Memory.BreakUnchanged(ctx, name, etag)
}

func (s remembers) Lease(name, id string) store.Lease {
	return remembersLease{s.Memory.Lease(name, id).(lease), s, name}
}

type lease interface {
	store.Lease
	store.Checkpointer
}

type remembersLease struct {
	lease
	of   remembers
	name string
}

func (l remembersLease) Load(ctx context.Context, etag string) ([]byte, error) {
	b, err := l.lease.Load(ctx, etag)
	return first(l.of, "checkpoint "+l.name, b, err)
}
