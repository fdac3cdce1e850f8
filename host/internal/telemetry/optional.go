package telemetry

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/store"
)

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
	_, err := measured(ctx, c.to, nil, call{op: "break"}, func() (struct{}, error) { return struct{}{}, c.breaker.Break(ctx, name, period) })
	return err
}

// A countedConditional is a countedBreaker that also breaks under a condition.
type countedConditional struct {
	countedBreaker
	conditional store.ConditionalBreaker
}

func (c countedConditional) BreakUnchanged(ctx context.Context, name, etag string) error {
	_, err := measured(ctx, c.to, nil, call{op: "break-unchanged"}, func() (struct{}, error) { return struct{}{}, c.conditional.BreakUnchanged(ctx, name, etag) })
	return err
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
	_, err := measured(ctx, c.to, nil, call{op: "list"}, func() (struct{}, error) { return struct{}{}, c.lister.List(ctx, app, f) })
	return err
}
