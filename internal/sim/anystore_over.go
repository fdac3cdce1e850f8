package sim

import (
	"context"
	"path"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// over returns what a replica has of a store: a [store.Documenter] and a [store.ConditionalBreaker] if the
// store is one.
func over(l *line, backend store.Store) store.Store {
	c := &client{l, backend}
	documents, keeps := backend.(store.Documenter)
	breaks, conditionally := backend.(store.ConditionalBreaker)
	d, b := &documenter{c, documents}, &breaker{c, breaks}
	switch {
	case keeps && conditionally:
		return struct {
			*documenter
			store.ConditionalBreaker
		}{d, b}
	case keeps:
		return d
	case conditionally:
		return struct {
			*client
			store.ConditionalBreaker
		}{c, b}
	}
	return c
}

// A breaker breaks leases over a line, under a condition.
type breaker struct {
	client *client
	inner  store.ConditionalBreaker
}

func (b *breaker) BreakUnchanged(ctx context.Context, name, etag string) error {
	x := errand{Event: trace.Event{Op: "break", Job: path.Base(name), Match: true}, etag: etag,
		do: func(ctx context.Context, got *result) { got.err = b.inner.BreakUnchanged(ctx, name, etag) }}
	return b.client.send(ctx, x).err
}
