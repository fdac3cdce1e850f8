package host_test

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist"
)

// down is a store out of reach. With hang, it gives no answer at all.
type down struct{ hang chan struct{} }

var errDown = errors.New("no route to the storage")

func (d down) Create(context.Context, string, []byte) (soloist.Entry, error) {
	return soloist.Entry{}, errDown
}

func (d down) Read(context.Context, string) (soloist.Entry, error) {
	if d.hang != nil {
		<-d.hang // not even the end of the context makes it return
	}
	return soloist.Entry{}, errDown
}

func (d down) Lease(string, string) soloist.Lease { return nil }

func (d down) Limits() (shortest, longest time.Duration) { return time.Second, time.Minute }

// gated is a store that hangs while shut is set.
type gated struct {
	soloist.Store
	shut   chan struct{}
	refuse error // of each read, at once
}

func (g *gated) Read(ctx context.Context, name string) (soloist.Entry, error) {
	if g.refuse != nil {
		return soloist.Entry{}, g.refuse
	}
	if g.shut != nil {
		<-g.shut
	}
	return g.Store.Read(ctx, name)
}

// counted counts the reads of a store.
type counted struct {
	soloist.Store
	reads chan struct{}
}

func (c counted) Read(ctx context.Context, name string) (soloist.Entry, error) {
	c.reads <- struct{}{}
	return c.Store.Read(ctx, name)
}

// outages is a store that is out of reach while now is set.
type outages struct {
	soloist.Store
	now error
}

func (o *outages) Read(ctx context.Context, name string) (soloist.Entry, error) {
	if o.now != nil {
		return soloist.Entry{}, o.now
	}
	return o.Store.Read(ctx, name)
}

func (o *outages) Lease(name, id string) soloist.Lease {
	return outageLease{o.Store.Lease(name, id), o}
}

type outageLease struct {
	soloist.Lease
	store *outages
}

func (l outageLease) Acquire(ctx context.Context, d time.Duration, etag string) (soloist.Stamp, error) {
	if l.store.now != nil {
		return soloist.Stamp{}, l.store.now
	}
	return l.Lease.Acquire(ctx, d, etag)
}
