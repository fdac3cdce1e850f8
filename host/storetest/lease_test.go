package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

type renewsAny struct{ *lease }

func (l renewsAny) Renew(ctx context.Context) (store.Revision, error) { return l.holder().Renew(ctx) }

type writesOver struct{ *lease }

func (l writesOver) Write(ctx context.Context, _ string, record []byte) (store.Revision, error) {
	for {
		stamp, err := l.lease.Write(ctx, l.etag(ctx), record)
		if !errors.Is(err, store.ErrChanged) {
			return stamp, err
		}
	}
}

type releasesAny struct{ *lease }

func (l releasesAny) Release(ctx context.Context) error {
	err := l.holder().Release(ctx)
	if errors.Is(err, store.ErrLost) {
		return nil
	}
	return err
}

type writesLate struct{ *lease }

func (l writesLate) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	stamp, err := l.lease.Write(ctx, etag, record)
	if errors.Is(err, store.ErrLost) {
		if _, err := l.lease.Renew(ctx); err == nil {
			return l.lease.Write(ctx, etag, record)
		}
	}
	return stamp, err
}

type writesForAny struct{ *lease }

func (l writesForAny) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.holder().Write(ctx, etag, record)
}

type acquiresHeld struct{ *lease }

func (l acquiresHeld) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	if errors.Is(err, store.ErrHeld) {
		_ = l.store.Break(ctx, l.name, 0)
		return l.lease.Acquire(ctx, d, etag)
	}
	return stamp, err
}

// acquiresOnce refuses the holder itself.
type acquiresOnce struct{ *lease }

func (l acquiresOnce) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if _, err := l.lease.Write(ctx, etag, []byte("x")); err == nil || errors.Is(err, store.ErrChanged) {
		return store.Revision{}, store.ErrHeld
	}
	return l.lease.Acquire(ctx, d, etag)
}

// acquiresFresh thinks that a lease which ended by itself is still there.
type acquiresFresh struct{ *lease }

func (l acquiresFresh) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && (e.State == store.Expired || e.State == store.Broken) {
		return store.Revision{}, store.ErrHeld
	}
	return l.lease.Acquire(ctx, d, etag)
}

// acquiresAnyLength cuts a length to the limits in silence.
type acquiresAnyLength struct{ *lease }

func (l acquiresAnyLength) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.lease.Acquire(ctx, min(max(d, local.Shortest), local.Longest), etag)
}

// writesNews makes no new ETag for a record that is there already.
type writesNews struct{ *lease }

func (l writesNews) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && string(e.Record) == string(record) && e.State.Live() {
		return e.Revision, nil
	}
	return l.lease.Write(ctx, etag, record)
}

// renewsLive cannot revive an expired lease.
type renewsLive struct{ *lease }

func (l renewsLive) Renew(ctx context.Context) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && e.State != store.Leased {
		return store.Revision{}, store.ErrLost
	}
	return l.lease.Renew(ctx)
}

type acquiresAnyway struct{ *lease }

func (l acquiresAnyway) Acquire(ctx context.Context, d time.Duration, _ string) (store.Revision, error) {
	return l.lease.Acquire(ctx, d, l.etag(ctx))
}
