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
	return measuredError(ctx, l.to, l.session, "release", func() error { return l.lease.Release(ctx) })
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

// counted returns a store whose calls are measured. It has the optional interfaces
// that s has and no others, since the scheduler asks which there are.
func counted(s store.Store, to *recorder) store.Store {
	if s == nil {
		return nil
	}
	c, o := &countedStore{s, to}, optionsOf(s, to)
	breaker, breaks := s.(store.LeaseBreaker)
	conditional, ok := s.(store.ConditionalBreaker)
	switch b := (countedBreaker{breaker, to}); {
	case breaks && ok: // a ConditionalBreaker is a LeaseBreaker
		return c.withConditional(countedConditional{b, conditional}, o)
	case breaks:
		return c.withBreaker(b, o)
	}
	return c.withOptions(o)
}

// options are what a store can do in addition to breaking leases.
type options struct {
	documenter       countedDocumenter
	lister           countedLister
	documents, lists bool
}

func optionsOf(s store.Store, to *recorder) options {
	documenter, documents := s.(store.Documenter)
	lister, lists := s.(store.Lister)
	return options{countedDocumenter{documenter, to}, countedLister{lister, to}, documents, lists}
}

func (c *countedStore) withOptions(o options) store.Store {
	switch {
	case o.documents && o.lists:
		return struct {
			*countedStore
			countedDocumenter
			countedLister
		}{c, o.documenter, o.lister}
	case o.documents:
		return struct {
			*countedStore
			countedDocumenter
		}{c, o.documenter}
	case o.lists:
		return struct {
			*countedStore
			countedLister
		}{c, o.lister}
	}
	return c
}

func (c *countedStore) withBreaker(b countedBreaker, o options) store.Store {
	switch {
	case o.documents && o.lists:
		return struct {
			*countedStore
			countedBreaker
			countedDocumenter
			countedLister
		}{c, b, o.documenter, o.lister}
	case o.documents:
		return struct {
			*countedStore
			countedBreaker
			countedDocumenter
		}{c, b, o.documenter}
	case o.lists:
		return struct {
			*countedStore
			countedBreaker
			countedLister
		}{c, b, o.lister}
	}
	return struct {
		*countedStore
		countedBreaker
	}{c, b}
}

func (c *countedStore) withConditional(b countedConditional, o options) store.Store {
	switch {
	case o.documents && o.lists:
		return struct {
			*countedStore
			countedConditional
			countedDocumenter
			countedLister
		}{c, b, o.documenter, o.lister}
	case o.documents:
		return struct {
			*countedStore
			countedConditional
			countedDocumenter
		}{c, b, o.documenter}
	case o.lists:
		return struct {
			*countedStore
			countedConditional
			countedLister
		}{c, b, o.lister}
	}
	return struct {
		*countedStore
		countedConditional
	}{c, b}
}

type countedBreaker struct {
	breaker store.LeaseBreaker
	to      *recorder
}

func (c countedBreaker) Break(ctx context.Context, name string, period time.Duration) error {
	return measuredError(ctx, c.to, nil, "break", func() error { return c.breaker.Break(ctx, name, period) })
}

// A countedConditional is a countedBreaker that also breaks under a condition.
type countedConditional struct {
	countedBreaker
	conditional store.ConditionalBreaker
}

func (c countedConditional) BreakUnchanged(ctx context.Context, name, etag string) error {
	return measuredError(ctx, c.to, nil, "break-unchanged", func() error { return c.conditional.BreakUnchanged(ctx, name, etag) })
}

type countedDocumenter struct {
	documenter store.Documenter
	to         *recorder
}

func (c countedDocumenter) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return measured(ctx, c.to, nil, call{op: "read-document"}, func() (store.Document, error) { return c.documenter.ReadDocument(ctx, name, etag) })
}

func (c countedDocumenter) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return measured(ctx, c.to, nil, call{op: "write-document"}, func() (store.Revision, error) { return c.documenter.WriteDocument(ctx, name, etag, body) })
}

type countedLister struct {
	lister store.Lister
	to     *recorder
}

func (c countedLister) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	return measuredError(ctx, c.to, nil, "list", func() error { return c.lister.List(ctx, app, f) })
}

// Logs returns logs whose calls are counted; nil if s is nil. They are apart from the store
// that counts calls: the scheduler uses none, so its store need not have them.
func (t *Telemetry) Logs(s store.Appender) store.Appender {
	if s == nil {
		return nil
	}
	return countedAppender{s, &t.calls}
}

type countedAppender struct {
	appender store.Appender
	to       *recorder
}

func (c countedAppender) Append(ctx context.Context, name string, size int64, b []byte) error {
	return measuredError(ctx, c.to, nil, "append", func() error { return c.appender.Append(ctx, name, size, b) })
}

func (c countedAppender) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	return measured(ctx, c.to, nil, call{op: "read-log"}, func() ([]byte, error) { return c.appender.ReadLog(ctx, name, offset, n) })
}

func (c countedAppender) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	return measuredError(ctx, c.to, nil, "list-logs", func() error { return c.appender.Logs(ctx, entry, f) })
}

func (c countedAppender) RemoveLog(ctx context.Context, name string) error {
	return measuredError(ctx, c.to, nil, "remove-log", func() error { return c.appender.RemoveLog(ctx, name) })
}
