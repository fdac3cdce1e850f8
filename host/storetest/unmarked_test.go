package storetest_test

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Each of these has one success without an ETag.

type unmarked struct{ *local.Memory }

func (s unmarked) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	e, err := s.Memory.Create(ctx, name, record)
	e.ETag = ""
	return e, err
}

type acquiresUnmarked struct{ *lease }

func (l acquiresUnmarked) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	stamp, err := l.lease.Acquire(ctx, d, etag)
	stamp.ETag = ""
	return stamp, err
}

type renewsUnmarked struct{ *lease }

func (l renewsUnmarked) Renew(ctx context.Context) (store.Revision, error) {
	stamp, err := l.lease.Renew(ctx)
	stamp.ETag = ""
	return stamp, err
}

type writesUnmarked struct{ *lease }

func (l writesUnmarked) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	stamp, err := l.lease.Write(ctx, etag, record)
	stamp.ETag = ""
	return stamp, err
}

type savesUnmarked struct{ *lease }

func (l savesUnmarked) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	stamp, err := l.lease.Save(ctx, etag, record, checkpoint)
	stamp.ETag = ""
	return stamp, err
}
