package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// A clientLease is a lease of a client.
type clientLease struct {
	Client
	name, id string
}

// change sends what is done under the lease, and names the version of the entry that the caller has seen.
func (l clientLease) change(ctx context.Context, what, op, etag string, body []byte, headers ...string) (store.Revision, error) {
	return l.all(ctx, what, etag, blobtest.NewRequest(op, Container, l.name, body, append(headers, IfMatch, etag)...))
}

func (l clientLease) all(ctx context.Context, what, etag string, r *blobtest.Request) (store.Revision, error) {
	if etag == "" {
		return store.Revision{}, errNoETag
	}
	_, rev, err := l.send(ctx, what, r)
	return rev, err
}

func (l clientLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if d%time.Second != 0 {
		return store.Revision{}, errors.New("the lease is no whole seconds")
	}
	return l.all(ctx, "acquire", etag, l.acquire(d, etag))
}

func (l clientLease) acquire(d time.Duration, etag string) *blobtest.Request {
	return blobtest.NewRequest("acquire", Container, l.name, nil, "x-ms-proposed-lease-id", l.id, "x-ms-lease-duration", strconv.Itoa(int(d/time.Second)), IfMatch, etag)
}

func (l clientLease) Renew(ctx context.Context) (store.Revision, error) {
	_, rev, err := l.ask(ctx, "renew", "renew", l.name, nil, LeaseID, l.id)
	return rev, err
}

func (l clientLease) Release(ctx context.Context) error {
	_, _, err := l.send(ctx, "release", l.release())
	return err
}

func (l clientLease) release() *blobtest.Request {
	return blobtest.NewRequest("release", Container, l.name, nil, LeaseID, l.id)
}

func (l clientLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.all(ctx, "write", etag, l.write(etag, record))
}

func (l clientLease) write(etag string, record []byte) *blobtest.Request {
	return blobtest.NewRequest("metadata", Container, l.name, nil, LeaseID, l.id, MetaKey, string(record), IfMatch, etag)
}

// A combiningLease is the lease of a store that takes two steps in one call.
type combiningLease struct{ clientLease }

func (l combiningLease) AcquireWrite(ctx context.Context, d time.Duration, etag string, record []byte) (store.Revision, error) {
	r := l.acquire(d, etag)
	r.Then = l.write(etag, record)
	return l.all(ctx, "acquire", etag, r)
}

func (l combiningLease) WriteRelease(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	r := l.write(etag, record)
	r.Then = l.release()
	return l.all(ctx, "write", etag, r)
}

func (l clientLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if len(checkpoint) > store.MaxCheckpoint {
		return store.Revision{}, errTooLong
	}
	return l.change(ctx, "save", "put", etag, []byte(string(checkpoint)), LeaseID, l.id, MetaKey, string(record), BlobType, BlockBlob)
}

func (l clientLease) Load(ctx context.Context, etag string) ([]byte, error) {
	if etag == "" {
		return nil, errNoETag
	}
	a, _, err := l.ask(ctx, "load", "get", l.name, nil, LeaseID, l.id, IfMatch, etag)
	if err != nil {
		return nil, err
	}
	return []byte(string(a.Body)), nil
}
