package host_test

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/store"
)

// down is a store out of reach. With hang, it gives no answer at all.
type down struct{ hang chan struct{} }

var errDown = errors.New("no route to the storage")

func (d down) Create(context.Context, string, []byte) (store.Entry, error) {
	return store.Entry{}, errDown
}

func (d down) Read(context.Context, string) (store.Entry, error) {
	if d.hang != nil {
		<-d.hang // not even the end of the context makes it return
	}
	return store.Entry{}, errDown
}

func (d down) Lease(string, string) store.Lease { return nil }

func (d down) Limits() (shortest, longest time.Duration) { return time.Second, time.Minute }

// gated is a store that hangs while shut is set.
type gated struct {
	store.Store
	shut   chan struct{}
	refuse error // of each read, at once
}

func (g *gated) Read(ctx context.Context, name string) (store.Entry, error) {
	if g.refuse != nil {
		return store.Entry{}, g.refuse
	}
	if g.shut != nil {
		<-g.shut
	}
	return g.Store.Read(ctx, name)
}

// counted counts the reads of a store.
type counted struct {
	store.Store
	reads chan struct{}
}

func (c counted) Read(ctx context.Context, name string) (store.Entry, error) {
	c.reads <- struct{}{}
	return c.Store.Read(ctx, name)
}

// outages is a store that is out of reach while now is set.
type outages struct {
	store.Store
	now error
}

func (o *outages) Read(ctx context.Context, name string) (store.Entry, error) {
	if o.now != nil {
		return store.Entry{}, o.now
	}
	return o.Store.Read(ctx, name)
}

func (o *outages) Lease(name, id string) store.Lease {
	return outageLease{o.Store.Lease(name, id), o}
}

type outageLease struct {
	store.Lease
	store *outages
}

func (l outageLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if l.store.now != nil {
		return store.Revision{}, l.store.now
	}
	return l.Lease.Acquire(ctx, d, etag)
}
