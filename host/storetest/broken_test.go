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

// mutant is a Memory whose leases have one fault, with what the faults remember.
type mutant struct {
	*local.Memory
	fault func(*lease) store.Lease

	holders sync.Map // id by name, of the last that acquired
}

func newMutant(fault func(*lease) store.Lease) *mutant {
	return &mutant{Memory: new(local.Memory), fault: fault}
}

func virtual(backend func() store.Store) storetest.Harness {
	return storetest.Harness{Virtual: true, New: func(*testing.T) store.Store { return backend() }}
}

// memory is a harness for a Memory with the fault of type S.
func memory[S interface {
	~struct{ *local.Memory }
	store.Store
}]() storetest.Harness {
	return virtual(func() store.Store { return S{new(local.Memory)} })
}

// leases is a harness for a store whose leases have the fault of type L.
func leases[L interface {
	~struct{ *lease }
	store.Lease
}]() storetest.Harness {
	return broken(func(l *lease) store.Lease { return L{l} })
}

func broken(fault func(*lease) store.Lease) storetest.Harness {
	return virtual(func() store.Store { return newMutant(fault) })
}

// sound is no fault.
func sound(l *lease) store.Lease { return l }

func (m *mutant) Lease(name, id string) store.Lease {
	return m.fault(&lease{Lease: m.Memory.Lease(name, id), store: m, name: name, id: id})
}

// lease is as it should be; each fault embeds it and spoils one method.
type lease struct {
	store.Lease
	store    *mutant
	name, id string
}

func (l *lease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.Lease.Acquire(ctx, d, etag)
	if err == nil {
		l.store.holders.Store(l.name, l.id)
	}
	return stamp, err
}

func (l *lease) keeper() store.Checkpointer { return l.Lease.(store.Checkpointer) }

func (l *lease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.keeper().Save(ctx, etag, record, checkpoint)
}

func (l *lease) Load(ctx context.Context, etag string) ([]byte, error) {
	return l.keeper().Load(ctx, etag)
}

// holder is the lease of whoever acquired it last.
func (l *lease) holder() store.Lease {
	if id, ok := l.store.holders.Load(l.name); ok {
		return l.store.Memory.Lease(l.name, id.(string))
	}
	return l.Lease
}

// etag is the present one.
func (l *lease) etag(ctx context.Context) string {
	e, _ := l.store.Read(ctx, l.name)
	return e.ETag
}
