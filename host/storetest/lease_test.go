package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

type renewsAny struct{ *lease }

func (l renewsAny) Renew(ctx context.Context) (store.Revision, error) { return l.holder().Renew(ctx) }

// renewsFirst gives a renewal the length of the entry's first lease.
type renewsFirst struct {
	*lease
	lengths *sync.Map // by name
}

func (l renewsFirst) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	if err == nil {
		l.lengths.LoadOrStore(l.name, d)
	}
	return stamp, err
}

func (l renewsFirst) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	if d, ok := l.lengths.Load(l.name); ok && err == nil {
		return l.lease.Acquire(ctx, d.(time.Duration), stamp.ETag)
	}
	return stamp, err
}

// renewsEarlier lets each earlier holder renew a lease that has run out.
type renewsEarlier struct {
	*lease
	holders *sync.Map // by id
}

func (l renewsEarlier) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	if err == nil {
		l.holders.Store(l.id, true)
	}
	return stamp, err
}

func (l renewsEarlier) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	if _, held := l.holders.Load(l.id); !held || !errors.Is(err, store.ErrLost) {
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

// writesNever calls everybody lost.
type writesNever struct{ *lease }

func (l writesNever) Write(context.Context, string, []byte) (store.Revision, error) {
	return store.Revision{}, store.ErrLost
}

// writesNews makes no new ETag for a record that is there already.
type writesNews struct{ *lease }

func (l writesNews) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && string(e.Record) == string(record) && e.State.Live() {
		return e.Revision, nil
	}
	return l.lease.Write(ctx, etag, record)
}

// releasesNever says it did.
type releasesNever struct{ *lease }

func (l releasesNever) Release(context.Context) error { return nil }

// stamps gives each lease call an ETag of its own.
type stamps struct{ *lease }

func (l stamps) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	stamp.ETag += "renewed"
	return stamp, err
}

// hides answers every refusal with success.
type hides struct{ *lease }

func (l hides) hide(ctx context.Context, stamp store.Revision, err error) (store.Revision, error) {
	for _, refusal := range []error{store.ErrHeld, store.ErrLost, store.ErrChanged} {
		if errors.Is(err, refusal) {
			return store.Revision{ETag: l.etag(ctx)}, nil
		}
	}
	return stamp, err
}

func (l hides) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	return l.hide(ctx, stamp, err)
}

func (l hides) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	return l.hide(ctx, stamp, err)
}

func (l hides) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	stamp, err := l.lease.Write(ctx, etag, record)
	return l.hide(ctx, stamp, err)
}

func (l hides) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	stamp, err := l.lease.Save(ctx, etag, record, checkpoint)
	return l.hide(ctx, stamp, err)
}

func (l hides) Load(ctx context.Context, etag string) ([]byte, error) {
	checkpoint, err := l.lease.Load(ctx, etag)
	_, err = l.hide(ctx, store.Revision{}, err)
	return checkpoint, err
}

func (l hides) Release(ctx context.Context) error {
	_, err := l.hide(ctx, store.Revision{}, l.lease.Release(ctx))
	return err
}

// unheard does what was asked, whatever the context says.
type unheard struct{ *lease }

func (l unheard) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.lease.Acquire(context.WithoutCancel(ctx), d, etag)
}

func (l unheard) Renew(ctx context.Context) (store.Revision, error) {
	return l.lease.Renew(context.WithoutCancel(ctx))
}

func (l unheard) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.lease.Write(context.WithoutCancel(ctx), etag, record)
}

func (l unheard) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.lease.Save(context.WithoutCancel(ctx), etag, record, checkpoint)
}

func (l unheard) Load(ctx context.Context, etag string) ([]byte, error) {
	return l.lease.Load(context.WithoutCancel(ctx), etag)
}

func (l unheard) Release(ctx context.Context) error {
	return l.lease.Release(context.WithoutCancel(ctx))
}

// renewsNever calls everybody lost.
type renewsNever struct{ *lease }

func (l renewsNever) Renew(context.Context) (store.Revision, error) {
	return store.Revision{}, store.ErrLost
}

// renewsLive cannot revive an expired lease.
type renewsLive struct{ *lease }

func (l renewsLive) Renew(ctx context.Context) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && e.State != store.Leased {
		return store.Revision{}, store.ErrLost
	}
	return l.lease.Renew(ctx)
}
