package telemetry

import (
	"context"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A countedStore counts the calls to a store.
type countedStore struct {
	store.Store
	to *recorder
}

func (c *countedStore) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return measured(ctx, c.to, nil, call{op: "create"}, func() (store.Entry, error) { return c.Store.Create(ctx, name, record) })
}

func (c *countedStore) Read(ctx context.Context, name string) (store.Entry, error) {
	return measured(ctx, c.to, nil, call{op: "read"}, func() (store.Entry, error) { return c.Store.Read(ctx, name) })
}

// Lease returns a lease that has checkpoints if the store's leases have them.
func (c *countedStore) Lease(name, id string) store.Lease {
	_, job, _ := strings.Cut(name, "/")
	l := &countedLease{lease: c.Store.Lease(name, id), to: c.to, session: &session{job: job}}
	if keeper, ok := l.lease.(store.Checkpointer); ok {
		return &countedCheckpointer{l, keeper}
	}
	return l
}

// A countedLease counts the calls to a lease.
type countedLease struct {
	lease   store.Lease
	to      *recorder
	session *session
}

func (l *countedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return measured(ctx, l.to, l.session, call{op: "acquire"}, func() (store.Revision, error) { return l.lease.Acquire(ctx, d, etag) })
}

func (l *countedLease) Renew(ctx context.Context) (store.Revision, error) {
	return measured(ctx, l.to, l.session, call{op: "renew"}, func() (store.Revision, error) { return l.lease.Renew(ctx) })
}

func (l *countedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return measured(ctx, l.to, l.session, call{op: "write", name: l.to.traces.nameOf(record)}, func() (store.Revision, error) { return l.lease.Write(ctx, etag, record) })
}

func (l *countedLease) Release(ctx context.Context) error {
	_, err := measured(ctx, l.to, l.session, call{op: "release"}, func() (struct{}, error) { return struct{}{}, l.lease.Release(ctx) })
	return err
}

// A countedCheckpointer is a countedLease with checkpoints.
type countedCheckpointer struct {
	*countedLease
	keeper store.Checkpointer
}

func (l *countedCheckpointer) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return measured(ctx, l.to, l.session, call{op: "save"}, func() (store.Revision, error) { return l.keeper.Save(ctx, etag, record, checkpoint) })
}

func (l *countedCheckpointer) Load(ctx context.Context, etag string) ([]byte, error) {
	return measured(ctx, l.to, l.session, call{op: "load"}, func() ([]byte, error) { return l.keeper.Load(ctx, etag) })
}
