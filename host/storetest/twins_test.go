package storetest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

func twoOf(backend func(*local.Memory) store.Store) storetest.Harness {
	h := virtual(func() store.Store { return backend(new(local.Memory)) })
	h.Two = func(*testing.T) (one, other store.Store) {
		place := new(local.Memory)
		return backend(place), backend(place)
	}
	return h
}

// A store without a cache passes: what one instance writes, the other sees.
func TestTwoInstances(t *testing.T) {
	storetest.Test(t, twoOf(func(m *local.Memory) store.Store { return m }))
}

// robbed is a pair of which one instance does not see the leases of the other.
func robbed() storetest.Harness {
	h := virtual(func() store.Store { return new(local.Memory) })
	h.Two = func(*testing.T) (one, other store.Store) {
		place := new(local.Memory)
		return place, robs{place}
	}
	return h
}

type robs struct{ *local.Memory }

func (r robs) Lease(name, id string) store.Lease {
	return robsLease{r.Memory.Lease(name, id), r, name}
}

type robsLease struct {
	store.Lease
	store robs
	name  string
}

func (l robsLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	_ = l.store.Break(ctx, l.name, 0)
	return l.Lease.Acquire(ctx, d, etag)
}

// remembers keeps the record and the ETag that it has read until it writes.
type remembers struct {
	*local.Memory
	seen *sync.Map // entries by name
}

func (r remembers) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := r.Memory.Read(ctx, name)
	if err != nil {
		return e, err
	}
	old, _ := r.seen.LoadOrStore(name, e)
	e.Record, e.ETag = append([]byte{}, old.(store.Entry).Record...), old.(store.Entry).ETag
	return e, nil
}

func (r remembers) Lease(name, id string) store.Lease {
	return remembersLease{r.Memory.Lease(name, id), r, name}
}

type remembersLease struct {
	store.Lease
	store remembers
	name  string
}

func (l remembersLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	stamp, err := l.Lease.Write(ctx, etag, record)
	l.store.seen.Delete(l.name)
	return stamp, err
}
