package storetest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// mutant is a Memory whose leases have a fault in some operations; in all if none is named.
type mutant struct {
	*local.Memory
	fault   fault
	ops     []string
	holders sync.Map // id by name, of the last that acquired
}

// A fault stands in place of a call of a lease.
type fault func(ctx context.Context, c *call) (store.Revision, error)

func mutate(m *local.Memory, f fault, ops ...string) *mutant {
	return &mutant{Memory: m, fault: f, ops: ops}
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

// leases is a harness for a store whose leases have a fault.
func leases(f fault, ops ...string) storetest.Harness {
	return virtual(func() store.Store { return mutate(new(local.Memory), f, ops...) })
}

// twoOf is a harness for a store of which two instances share one place.
func twoOf(backend func(*local.Memory) store.Store) storetest.Harness {
	h := virtual(func() store.Store { return backend(new(local.Memory)) })
	h.Two = func(*testing.T) (one, other store.Store) {
		place := new(local.Memory)
		return backend(place), backend(place)
	}
	return h
}

func (m *mutant) Lease(name, id string) store.Lease { return lease{m, name, id} }

// holder is the id of whoever acquired the lease last, or else this one.
func (m *mutant) holder(name, id string) string {
	last, _ := m.holders.LoadOrStore(name, id)
	return last.(string)
}

// A call is one call of a lease, with its arguments; the checkpoint of a load is its result.
type call struct {
	store              *mutant
	name, id, op       string
	length             time.Duration
	etag               string
	record, checkpoint []byte
}

// run does what the call asks for. That of a load or a release tells no revision.
func (c *call) run(ctx context.Context) (r store.Revision, err error) {
	switch l := c.lease(); c.op {
	case "acquire":
		if r, err = l.Acquire(ctx, c.length, c.etag); err == nil {
			c.store.holders.Store(c.name, c.id)
		}
	case "renew":
		r, err = l.Renew(ctx)
	case "write":
		r, err = l.Write(ctx, c.etag, c.record)
	case "release":
		err = l.Release(ctx)
	case "save":
		r, err = l.(store.Checkpointer).Save(ctx, c.etag, c.record, c.checkpoint)
	case "load":
		c.checkpoint, err = l.(store.Checkpointer).Load(ctx, c.etag)
	}
	return r, err
}

// lease is the one without the fault.
func (c *call) lease() store.Lease { return c.store.Memory.Lease(c.name, c.id) }

// present is the entry as it is.
func (c *call) present(ctx context.Context) store.Entry {
	e, _ := c.store.Memory.Read(ctx, c.name)
	return e
}

type lease struct {
	store    *mutant
	name, id string
}

func (l lease) do(ctx context.Context, c *call) (store.Revision, error) {
	c.store, c.name, c.id = l.store, l.name, l.id
	if len(l.store.ops) == 0 || slices.Contains(l.store.ops, c.op) {
		return l.store.fault(ctx, c)
	}
	return c.run(ctx)
}

func (l lease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.do(ctx, &call{op: "acquire", length: d, etag: etag})
}

func (l lease) Renew(ctx context.Context) (store.Revision, error) {
	return l.do(ctx, &call{op: "renew"})
}

func (l lease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.do(ctx, &call{op: "write", etag: etag, record: record})
}

func (l lease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.do(ctx, &call{op: "save", etag: etag, record: record, checkpoint: checkpoint})
}

func (l lease) Load(ctx context.Context, etag string) ([]byte, error) {
	c := call{op: "load", etag: etag}
	_, err := l.do(ctx, &c)
	return c.checkpoint, err
}

func (l lease) Release(ctx context.Context) error {
	_, err := l.do(ctx, &call{op: "release"})
	return err
}
