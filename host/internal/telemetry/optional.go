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
	c := &countedStore{s, to}
	breaker, breaks := s.(store.LeaseBreaker)
	documenter, documents := s.(store.Documenter)
	lister, lists := s.(store.Lister)
	b, d, l := countedBreaker{breaker, to}, countedDocumenter{documenter, to}, countedLister{lister, to}
	switch {
	case breaks && documents && lists:
		return struct {
			*countedStore
			countedBreaker
			countedDocumenter
			countedLister
		}{c, b, d, l}
	case breaks && documents:
		return struct {
			*countedStore
			countedBreaker
			countedDocumenter
		}{c, b, d}
	case breaks && lists:
		return struct {
			*countedStore
			countedBreaker
			countedLister
		}{c, b, l}
	case documents && lists:
		return struct {
			*countedStore
			countedDocumenter
			countedLister
		}{c, d, l}
	case breaks:
		return struct {
			*countedStore
			countedBreaker
		}{c, b}
	case documents:
		return struct {
			*countedStore
			countedDocumenter
		}{c, d}
	case lists:
		return struct {
			*countedStore
			countedLister
		}{c, l}
	}
	return c
}

type countedBreaker struct {
	breaker store.LeaseBreaker
	to      *recorder
}

func (c countedBreaker) Break(ctx context.Context, name string, period time.Duration) error {
	_, err := measured(ctx, c.to, nil, call{op: "break"}, func() (struct{}, error) { return struct{}{}, c.breaker.Break(ctx, name, period) })
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
