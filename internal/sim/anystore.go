package sim

import (
	"bytes"
	"context"
	"path"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// A client is what a replica has of [Config.Store]: calls of that, over a line.
// It sends nothing by itself and knows nothing of the store, so what is
// simulated is any.
type client struct {
	*line
	store store.Store
}

// An errand is what a call asks of the store. It may be run when nobody waits
// for it any more, so it keeps none of its caller's bytes.
type errand struct {
	trace.Event               // as it is logged
	etag               string // that it names
	record, checkpoint []byte // that it brings
	do                 func(context.Context, *result)
}

type result struct {
	store.Entry
	checkpoint []byte
	listed     []listed
	err        error
}

func (c *client) Limits() (shortest, longest time.Duration) { return c.store.Limits() }

func (c *client) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	got := c.send(ctx, creation(c.store, name, bytes.Clone(record)))
	return got.Entry, got.err
}

func creation(backend store.Store, name string, record []byte) errand {
	return errand{Event: trace.Event{Op: "create", Job: path.Base(name), Record: decode(string(record))}, record: record,
		do: func(ctx context.Context, got *result) { got.Entry, got.err = backend.Create(ctx, name, record) }}
}

func (c *client) Read(ctx context.Context, name string) (store.Entry, error) {
	got := c.send(ctx, errand{Event: trace.Event{Op: "read", Job: path.Base(name)},
		do: func(ctx context.Context, got *result) { got.Entry, got.err = c.store.Read(ctx, name) }})
	return got.Entry, got.err
}

// Lease returns a [store.Checkpointer] if that of the store is one.
func (c *client) Lease(name, id string) store.Lease {
	h := &handle{c, c.store.Lease(name, id), path.Base(name), id}
	if inner, ok := h.lease.(store.Checkpointer); ok {
		return &keeper{h, inner}
	}
	return h
}

// A handle is a lease over a line.
type handle struct {
	*client
	lease   store.Lease
	job, id string
}

// call sends what a stamp answers.
func (h *handle) call(ctx context.Context, x errand, do func(context.Context) (store.Revision, error)) (store.Revision, error) {
	x.Job, x.Lease, x.Match = h.job, h.id, x.etag != ""
	x.do = func(ctx context.Context, got *result) { got.Revision, got.err = do(ctx) }
	got := h.send(ctx, x)
	return got.Revision, got.err
}

func (h *handle) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return h.call(ctx, errand{Event: trace.Event{Op: "acquire", Span: d}, etag: etag}, func(ctx context.Context) (store.Revision, error) {
		return h.lease.Acquire(ctx, d, etag)
	})
}

func (h *handle) Renew(ctx context.Context) (store.Revision, error) {
	return h.call(ctx, errand{Event: trace.Event{Op: "renew"}}, h.lease.Renew)
}

func (h *handle) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	record = bytes.Clone(record)
	x := errand{Event: trace.Event{Lease: h.id, Record: h.records.record(string(record))}, etag: etag, record: record}
	x.Op = h.classifier.part(&x.Event)
	return h.call(ctx, x, func(ctx context.Context) (store.Revision, error) { return h.lease.Write(ctx, etag, record) })
}

func (h *handle) Release(ctx context.Context) error {
	_, err := h.call(ctx, errand{Event: trace.Event{Op: "release"}}, func(ctx context.Context) (store.Revision, error) {
		return store.Revision{}, h.lease.Release(ctx)
	})
	return err
}

// A keeper is a handle on an entry that has a checkpoint.
type keeper struct {
	*handle
	inner store.Checkpointer
}

func (k *keeper) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	record, checkpoint = bytes.Clone(record), bytes.Clone(checkpoint)
	x := errand{Event: trace.Event{Op: "save", Record: k.records.record(string(record)), Note: brief(string(checkpoint))},
		etag: etag, record: record, checkpoint: checkpoint}
	return k.call(ctx, x, func(ctx context.Context) (store.Revision, error) {
		return k.inner.Save(ctx, etag, record, checkpoint)
	})
}

func (k *keeper) Load(ctx context.Context, etag string) ([]byte, error) {
	got := k.send(ctx, errand{Event: trace.Event{Op: "load", Job: k.job, Lease: k.id, Match: etag != ""}, etag: etag,
		do: func(ctx context.Context, got *result) { got.checkpoint, got.err = k.inner.Load(ctx, etag) }})
	return got.checkpoint, got.err
}
