package storetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// A call is one call of a lease. That of a load or a release tells no revision.
type call func(ctx context.Context) (store.Revision, error)

// calls is a harness for a store whose leases have a fault in these operations; in
// all if none is named.
func calls(fault func(ctx context.Context, l *lease, do call) (store.Revision, error), ops ...string) storetest.Harness {
	return broken(func(l *lease) store.Lease {
		return faulty{l, func(ctx context.Context, op string, do call) (store.Revision, error) {
			if len(ops) == 0 || slices.Contains(ops, op) {
				return fault(ctx, l, do)
			}
			return do(ctx)
		}}
	})
}

// faulty is a lease whose calls go through a function.
type faulty struct {
	*lease
	through func(ctx context.Context, op string, do call) (store.Revision, error)
}

func (l faulty) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.through(ctx, "acquire", func(ctx context.Context) (store.Revision, error) { return l.lease.Acquire(ctx, d, etag) })
}

func (l faulty) Renew(ctx context.Context) (store.Revision, error) {
	return l.through(ctx, "renew", l.lease.Renew)
}

func (l faulty) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.through(ctx, "write", func(ctx context.Context) (store.Revision, error) { return l.lease.Write(ctx, etag, record) })
}

func (l faulty) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.through(ctx, "save", func(ctx context.Context) (store.Revision, error) {
		return l.lease.Save(ctx, etag, record, checkpoint)
	})
}

func (l faulty) Load(ctx context.Context, etag string) (checkpoint []byte, err error) {
	_, err = l.through(ctx, "load", func(ctx context.Context) (_ store.Revision, err error) {
		checkpoint, err = l.lease.Load(ctx, etag)
		return store.Revision{}, err
	})
	return checkpoint, err
}

func (l faulty) Release(ctx context.Context) error {
	_, err := l.through(ctx, "release", func(ctx context.Context) (store.Revision, error) { return store.Revision{}, l.lease.Release(ctx) })
	return err
}

// lost calls everybody lost.
func lost(context.Context, *lease, call) (store.Revision, error) {
	return store.Revision{}, store.ErrLost
}

// nothing says it did.
func nothing(context.Context, *lease, call) (store.Revision, error) { return store.Revision{}, nil }

// unheard does what was asked, whatever the context says.
func unheard(ctx context.Context, _ *lease, do call) (store.Revision, error) {
	return do(context.WithoutCancel(ctx))
}

// unmarked succeeds without an ETag.
func unmarked(ctx context.Context, _ *lease, do call) (store.Revision, error) {
	stamp, err := do(ctx)
	stamp.ETag = ""
	return stamp, err
}

// renewed renews on the way.
func renewed(ctx context.Context, l *lease, do call) (store.Revision, error) {
	_, _ = l.Renew(ctx)
	return do(ctx)
}

// hidden answers every refusal with success.
func hidden(ctx context.Context, l *lease, do call) (store.Revision, error) {
	stamp, err := do(ctx)
	for _, refusal := range []error{store.ErrHeld, store.ErrLost, store.ErrChanged} {
		if errors.Is(err, refusal) {
			return store.Revision{ETag: l.etag(ctx)}, nil
		}
	}
	return stamp, err
}
