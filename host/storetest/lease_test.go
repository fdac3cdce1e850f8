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

// renewsFirst gives a renewal the length of the entry's first lease.
type renewsFirst struct{ *lease }

func (l renewsFirst) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	if err == nil {
		l.store.lengths.LoadOrStore(l.name, d)
	}
	return stamp, err
}

func (l renewsFirst) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	if d, ok := l.store.lengths.Load(l.name); ok && err == nil {
		return l.lease.Acquire(ctx, d.(time.Duration), stamp.ETag)
	}
	return stamp, err
}

// renewsEarlier lets each earlier holder renew a lease that has run out.
type renewsEarlier struct{ *lease }

func (l renewsEarlier) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	if err == nil {
		l.store.held.Store(l.id, true)
	}
	return stamp, err
}

func (l renewsEarlier) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	if _, held := l.store.held.Load(l.id); !held || !errors.Is(err, store.ErrLost) {
		return stamp, err
	}
	if e, readErr := l.store.Read(ctx, l.name); readErr == nil && e.State == store.Expired {
		return l.lease.Acquire(ctx, local.Shortest, e.ETag)
	}
	return stamp, err
}

type writesOver struct{ *lease }

func (l writesOver) Write(ctx context.Context, _ string, record []byte) (store.Revision, error) {
	for {
		stamp, err := l.lease.Write(ctx, l.etag(ctx), record)
		if !errors.Is(err, store.ErrChanged) {
			return stamp, err
		}
	}
}

type acquiresAnyway struct{ *lease }

func (l acquiresAnyway) Acquire(ctx context.Context, d time.Duration, _ string) (store.Revision, error) {
	return l.lease.Acquire(ctx, d, l.etag(ctx))
}

type acquiresExpired struct{ *lease }

func (l acquiresExpired) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && e.State == store.Expired {
		etag = e.ETag
	}
	return l.lease.Acquire(ctx, d, etag)
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

// keepsLength renews where it should acquire anew.
type keepsLength struct{ *lease }

func (l keepsLength) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && e.State == store.Leased && e.ETag == etag {
		if stamp, err := l.lease.Renew(ctx); err == nil {
			return stamp, nil
		}
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
