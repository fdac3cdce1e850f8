//go:build linux

package main

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A counted store counts the calls that reach it. What it does not name here is the memory's, as
// the optional parts of the contract are.
type counted struct {
	*local.Memory
	kinds   map[string]*atomic.Int64
	written func(at time.Time) // after each write of a record
}

func newCounted(memory *local.Memory) *counted {
	c := &counted{Memory: memory, kinds: map[string]*atomic.Int64{}, written: func(time.Time) {}}
	for _, kind := range []string{"create", "read", "list", "acquire", "renew", "write", "release", "document"} {
		c.kinds[kind] = new(atomic.Int64)
	}
	return c
}

// total returns the calls so far, by kind.
func (c *counted) total() map[string]int64 {
	all := map[string]int64{}
	for kind, n := range c.kinds {
		all[kind] = n.Load()
	}
	return all
}

// since takes earlier counts from the counts now, and leaves out what is zero.
func (c *counted) since(earlier map[string]int64) map[string]int64 {
	all := c.total()
	for kind := range all {
		all[kind] -= earlier[kind]
	}
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	return all
}

func (c *counted) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	defer c.kinds["create"].Add(1) // counted when it is done: who waits for all entries waits for that
	return c.Memory.Create(ctx, name, record)
}

func (c *counted) Read(ctx context.Context, name string) (store.Entry, error) {
	c.kinds["read"].Add(1)
	return c.Memory.Read(ctx, name)
}

func (c *counted) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	c.kinds["list"].Add(1)
	return c.Memory.List(ctx, app, f)
}

func (c *counted) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	c.kinds["document"].Add(1)
	return c.Memory.ReadDocument(ctx, name, etag)
}

func (c *counted) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	c.kinds["document"].Add(1)
	return c.Memory.WriteDocument(ctx, name, etag, body)
}

func (c *counted) Lease(name, id string) store.Lease {
	return &countedLease{c.Memory.Lease(name, id), c}
}

type countedLease struct {
	store.Lease
	all *counted
}

func (l *countedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	l.all.kinds["acquire"].Add(1)
	return l.Lease.Acquire(ctx, d, etag)
}

func (l *countedLease) Renew(ctx context.Context) (store.Revision, error) {
	l.all.kinds["renew"].Add(1)
	return l.Lease.Renew(ctx)
}

func (l *countedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	l.all.kinds["write"].Add(1)
	r, err := l.Lease.Write(ctx, etag, record)
	l.all.written(time.Now())
	return r, err
}

func (l *countedLease) Release(ctx context.Context) error {
	l.all.kinds["release"].Add(1)
	return l.Lease.Release(ctx)
}
