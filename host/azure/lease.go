package azure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/soloist-go/soloist/store"
)

// A hold is the lease of one blob under one id. Every request names the id;
// those that depend on what the caller has seen name the ETag as well.
type hold struct {
	store    *Store
	name, id string
	blob     *blockblob.Client
	lease    *lease.BlobClient
}

func newHold(s *Store, name, id string) *hold {
	b := s.container.NewBlockBlobClient(name)
	// It fails only where it has to invent an id.
	l, _ := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: &id})
	return &hold{store: s, name: name, id: id, blob: b, lease: l}
}

var (
	_ store.Lease        = (*hold)(nil)
	_ store.Checkpointer = (*hold)(nil)
)

// errNoETag stops a request whose If-Match would be empty, and so mean nothing.
var errNoETag = errors.New("no ETag given")

func (h *hold) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if err := checkSpan(d); err != nil {
		return store.Revision{}, fmt.Errorf("azure: acquire %s: %w", h.name, err)
	}
	match, err := ifMatch(etag)
	if err != nil {
		return store.Revision{}, fmt.Errorf("azure: acquire %s: %w", h.name, err)
	}
	resp, err := h.lease.AcquireLease(ctx, int32(d/time.Second), &lease.BlobAcquireOptions{ModifiedAccessConditions: match})
	if err != nil {
		return store.Revision{}, translate(acquire, h.name, err)
	}
	return stamped(acquire, h.name, resp.ETag, resp.Date)
}

func (h *hold) Renew(ctx context.Context) (store.Revision, error) {
	resp, err := h.lease.RenewLease(ctx, nil)
	if err != nil {
		return store.Revision{}, translate(renew, h.name, err)
	}
	return stamped(renew, h.name, resp.ETag, resp.Date)
}

func (h *hold) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if err := checkRecord(record); err != nil {
		return store.Revision{}, err
	}
	guards, err := h.guards(etag)
	if err != nil {
		return store.Revision{}, fmt.Errorf("azure: write %s: %w", h.name, err)
	}
	resp, err := h.blob.SetMetadata(ctx, metadata(record), &blob.SetMetadataOptions{AccessConditions: guards})
	if err != nil {
		return store.Revision{}, translate(write, h.name, err)
	}
	h.store.noteVersion(resp.VersionID)
	return stamped(write, h.name, resp.ETag, resp.Date)
}

// guards let a request through while the lease is ours and the ETag the same.
func (h *hold) guards(etag string) (*blob.AccessConditions, error) {
	match, err := ifMatch(etag)
	if err != nil {
		return nil, err
	}
	return &blob.AccessConditions{
		LeaseAccessConditions:    &blob.LeaseAccessConditions{LeaseID: &h.id},
		ModifiedAccessConditions: match,
	}, nil
}

func (h *hold) Release(ctx context.Context) error {
	_, err := h.lease.ReleaseLease(ctx, nil)
	return translate(release, h.name, err)
}

func ifMatch(etag string) (*blob.ModifiedAccessConditions, error) {
	if etag == "" {
		return nil, errNoETag
	}
	e := azcore.ETag(etag)
	return &blob.ModifiedAccessConditions{IfMatch: &e}, nil
}

func checkSpan(d time.Duration) error {
	if d < 15*time.Second || d > 60*time.Second || d%time.Second != 0 {
		return fmt.Errorf("a lease of %s is not whole seconds from 15 to 60 s", d)
	}
	return nil
}
