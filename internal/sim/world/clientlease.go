package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A clientLease is a lease of a client.
type clientLease struct {
	Client
	name, id string
}

// change sends what is done under the lease, and names the version of the entry that the caller has seen.
func (l clientLease) change(ctx context.Context, what, op, etag string, body []byte, headers ...string) (store.Revision, error) {
	if etag == "" {
		return store.Revision{}, errNoETag
	}
	_, rev, err := l.ask(ctx, what, op, l.name, body, append(headers, IfMatch, etag)...)
	return rev, err
}

func (l clientLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if d%time.Second != 0 {
		return store.Revision{}, errors.New("the lease is no whole seconds")
	}
	return l.change(ctx, "acquire", "acquire", etag, nil, "x-ms-proposed-lease-id", l.id, "x-ms-lease-duration", strconv.Itoa(int(d/time.Second)))
}

func (l clientLease) Renew(ctx context.Context) (store.Revision, error) {
	_, rev, err := l.ask(ctx, "renew", "renew", l.name, nil, LeaseID, l.id)
	return rev, err
}

func (l clientLease) Release(ctx context.Context) error {
	_, _, err := l.ask(ctx, "release", "release", l.name, nil, LeaseID, l.id)
	return err
}

func (l clientLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.change(ctx, "write", "metadata", etag, nil, LeaseID, l.id, MetaKey, string(record))
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
