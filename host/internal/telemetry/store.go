package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A countedStore counts the calls to a store. It has all methods that a store may have; [countedStore.shown] hides those that
// this one has not.
type countedStore struct {
	store.Store
	breaker     store.LeaseBreaker // nil, as the following may be: the store is none
	conditional store.ConditionalBreaker
	documenter  store.Documenter
	lister      store.Lister
	to          *Telemetry
	called      func(context.Context, Call) // takes the calls for traces; nil: there are none
}

// counted returns a store whose calls are measured. It has the optional interfaces
// that s has and no others, since the scheduler asks which there are.
func counted(s store.Store, to *Telemetry) store.Store {
	if s == nil {
		return nil
	}
	return newCountedStore(s, to).shown()
}

func newCountedStore(s store.Store, to *Telemetry) *countedStore {
	c := &countedStore{Store: s, to: to, called: to.called()}
	c.breaker, _ = s.(store.LeaseBreaker)
	c.conditional, _ = s.(store.ConditionalBreaker)
	c.documenter, _ = s.(store.Documenter)
	c.lister, _ = s.(store.Lister)
	return c
}

// What a store may be: it documents and lists, its leases can be broken, and that under a condition. Each is a Watcher, which
// may say that it cannot watch.
type (
	watches interface {
		store.Store
		store.Watcher
	}
	documents interface {
		watches
		store.Documenter
	}
	lists interface {
		watches
		store.Lister
	}
	documentsLists interface {
		documents
		store.Lister
	}
	breaks interface {
		watches
		store.LeaseBreaker
	}
	breaksDocuments interface {
		documents
		store.LeaseBreaker
	}
	breaksLists interface {
		lists
		store.LeaseBreaker
	}
	breaksDocumentsLists interface {
		documentsLists
		store.LeaseBreaker
	}
	conditional interface {
		breaks
		store.ConditionalBreaker
	}
	conditionalDocuments interface {
		breaksDocuments
		store.ConditionalBreaker
	}
	conditionalLists interface {
		breaksLists
		store.ConditionalBreaker
	}
	conditionalDocumentsLists interface {
		breaksDocumentsLists
		store.ConditionalBreaker
	}
)

// shown returns the store without the methods that the store below has not.
func (c *countedStore) shown() store.Store {
	ways := [...]store.Store{struct{ watches }{c}, struct{ documents }{c}, struct{ lists }{c}, struct{ documentsLists }{c}}
	switch {
	case c.breaker != nil && c.conditional != nil: // a ConditionalBreaker is a LeaseBreaker
		ways = [...]store.Store{struct{ conditional }{c}, struct{ conditionalDocuments }{c}, struct{ conditionalLists }{c}, struct{ conditionalDocumentsLists }{c}}
	case c.breaker != nil:
		ways = [...]store.Store{struct{ breaks }{c}, struct{ breaksDocuments }{c}, struct{ breaksLists }{c}, struct{ breaksDocumentsLists }{c}}
	}
	way := 0
	if c.documenter != nil {
		way++
	}
	if c.lister != nil {
		way += 2
	}
	return ways[way]
}

func (c *countedStore) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return measured(ctx, c.to, c.called, Call{Op: "create"}, func() (store.Entry, error) { return c.Store.Create(ctx, name, record) })
}

func (c *countedStore) Read(ctx context.Context, name string) (store.Entry, error) {
	return measured(ctx, c.to, c.called, Call{Op: "read"}, func() (store.Entry, error) { return c.Store.Read(ctx, name) })
}

func (c *countedStore) Break(ctx context.Context, name string, period time.Duration) error {
	return measuredError(ctx, c.to, c.called, "break", func() error { return c.breaker.Break(ctx, name, period) })
}

func (c *countedStore) BreakUnchanged(ctx context.Context, name, etag string) error {
	return measuredError(ctx, c.to, c.called, "break-unchanged", func() error { return c.conditional.BreakUnchanged(ctx, name, etag) })
}

func (c *countedStore) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return measured(ctx, c.to, c.called, Call{Op: "read-document"}, func() (store.Document, error) { return c.documenter.ReadDocument(ctx, name, etag) })
}

func (c *countedStore) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return measured(ctx, c.to, c.called, Call{Op: "write-document"}, func() (store.Revision, error) { return c.documenter.WriteDocument(ctx, name, etag, body) })
}

func (c *countedStore) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	return measuredError(ctx, c.to, c.called, "list", func() error { return c.lister.List(ctx, app, f) })
}

// Watch is not counted: it lasts as long as the program.
func (c *countedStore) Watch(ctx context.Context, app string, changed func(name string)) error {
	if w, ok := c.Store.(store.Watcher); ok {
		return w.Watch(ctx, app, changed)
	}
	return errors.ErrUnsupported
}

// Lease returns a lease that has checkpoints, two steps in one call, and transactions if the store's leases have them.
func (c *countedStore) Lease(name, id string) store.Lease {
	_, job, _ := strings.Cut(name, "/")
	l := &countedLease{lease: c.Store.Lease(name, id), to: c.to}
	if traces := c.to.export.Traces; traces != nil {
		l.called = traces.Lease(job)
	}
	switch below := l.lease.(type) { // each one has what those after it have
	case store.Transactor:
		return &countedTransactor{&countedCombiner{&countedCheckpointer{l, below}, below}, below}
	case store.Combiner:
		return &countedCombiner{&countedCheckpointer{l, below}, below}
	case store.Checkpointer:
		return &countedCheckpointer{l, below}
	}
	return l
}

// A countedLease counts the calls to a lease.
type countedLease struct {
	lease  store.Lease
	to     *Telemetry
	called func(context.Context, Call)
}

func (l *countedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "acquire"}, func() (store.Revision, error) { return l.lease.Acquire(ctx, d, etag) })
}

func (l *countedLease) Renew(ctx context.Context) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "renew"}, func() (store.Revision, error) { return l.lease.Renew(ctx) })
}

func (l *countedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "write", Record: record}, func() (store.Revision, error) { return l.lease.Write(ctx, etag, record) })
}

func (l *countedLease) Release(ctx context.Context) error {
	return measuredError(ctx, l.to, l.called, "release", func() error { return l.lease.Release(ctx) })
}

// A countedCheckpointer is a countedLease with checkpoints.
type countedCheckpointer struct {
	*countedLease
	keeper store.Checkpointer
}

func (l *countedCheckpointer) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "save"}, func() (store.Revision, error) { return l.keeper.Save(ctx, etag, record, checkpoint) })
}

func (l *countedCheckpointer) Load(ctx context.Context, etag string) ([]byte, error) {
	return measured(ctx, l.to, l.called, Call{Op: "load"}, func() ([]byte, error) { return l.keeper.Load(ctx, etag) })
}

// A countedCombiner is a countedCheckpointer with two steps in one call.
type countedCombiner struct {
	*countedCheckpointer
	combiner store.Combiner
}

func (l *countedCombiner) AcquireWrite(ctx context.Context, d time.Duration, etag string, record []byte) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "acquire-write"}, func() (store.Revision, error) { return l.combiner.AcquireWrite(ctx, d, etag, record) })
}

func (l *countedCombiner) WriteRelease(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "write-release"}, func() (store.Revision, error) { return l.combiner.WriteRelease(ctx, etag, record) })
}

// A countedTransactor is a countedCombiner with transactions.
type countedTransactor struct {
	*countedCombiner
	transactor store.Transactor
}

func (l *countedTransactor) Transact(ctx context.Context, f func(tx any, write store.TransactionWrite) error) (store.Revision, error) {
	return measured(ctx, l.to, l.called, Call{Op: "transact"}, func() (store.Revision, error) { return l.transactor.Transact(ctx, f) })
}

// Logs returns logs whose calls are counted; nil if s is nil. They are apart from the store
// that counts calls: the scheduler uses none, so its store need not have them.
func (t *Telemetry) Logs(s store.Appender) store.Appender {
	if s == nil {
		return nil
	}
	return countedAppender{s, t, t.called()}
}

type countedAppender struct {
	appender store.Appender
	to       *Telemetry
	called   func(context.Context, Call)
}

func (c countedAppender) Append(ctx context.Context, name string, size int64, b []byte) error {
	return measuredError(ctx, c.to, c.called, "append", func() error { return c.appender.Append(ctx, name, size, b) })
}

func (c countedAppender) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	return measured(ctx, c.to, c.called, Call{Op: "read-log"}, func() ([]byte, error) { return c.appender.ReadLog(ctx, name, offset, n) })
}

func (c countedAppender) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	return measuredError(ctx, c.to, c.called, "list-logs", func() error { return c.appender.Logs(ctx, entry, f) })
}

func (c countedAppender) RemoveLog(ctx context.Context, name string) error {
	return measuredError(ctx, c.to, c.called, "remove-log", func() error { return c.appender.RemoveLog(ctx, name) })
}
