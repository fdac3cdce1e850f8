package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	return stamped(acquire, h.name, resp.ETag, resp.Date, err)
}

func (h *hold) Renew(ctx context.Context) (store.Revision, error) {
	resp, err := h.lease.RenewLease(ctx, nil)
	return stamped(renew, h.name, resp.ETag, resp.Date, err)
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
	h.store.noteVersion(resp.VersionID)
	return stamped(write, h.name, resp.ETag, resp.Date, err)
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

// contentType is for people who look at the blob: the core saves JSON.
var contentType = "application/json"

// Save puts the whole blob again. That erases metadata which it does not bring
// (https://learn.microsoft.com/rest/api/storageservices/put-blob), so the
// record goes along; it keeps the lease.
func (h *hold) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if err := checkRecord(record); err != nil {
		return store.Revision{}, err
	}
	if n := len(checkpoint); n > store.MaxCheckpoint {
		return store.Revision{}, fmt.Errorf("azure: save %s: the checkpoint has %d bytes, more than %d", h.name, n, store.MaxCheckpoint)
	}
	guards, err := h.guards(etag)
	if err != nil {
		return store.Revision{}, fmt.Errorf("azure: save %s: %w", h.name, err)
	}
	return h.store.put(ctx, save, h.name, checkpoint, &upload{
		Metadata:         metadata(record),
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &contentType},
		AccessConditions: guards,
	})
}

// Load gets the blob's content.
func (h *hold) Load(ctx context.Context, etag string) ([]byte, error) {
	guards, err := h.guards(etag)
	if err != nil {
		return nil, fmt.Errorf("azure: load %s: %w", h.name, err)
	}
	resp, err := h.blob.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: guards})
	if err != nil {
		return nil, translate(load, h.name, err)
	}
	defer resp.Body.Close()
	// The library takes a 304, which has no content, for a success.
	if resp.LeaseState == nil || resp.ETag == nil || string(*resp.ETag) != etag {
		return nil, fmt.Errorf("azure: load %s: the answer is not about ETag %s or has no lease state: it is not from the Blob service", h.name, etag)
	}
	return readBody(load, h.name, &resp, store.MaxCheckpoint)
}

// readBody reads the content of a blob, which is at most limit bytes long. Nothing is read
// of a longer one whose length the service reports.
func readBody(o op, name string, resp *blob.DownloadStreamResponse, limit int64) ([]byte, error) {
	if resp.ContentLength != nil && *resp.ContentLength > limit {
		return nil, fmt.Errorf("azure: %s %s: %w", o, name, store.ErrTooLarge)
	}
	// Not by resp.NewRetryReader, which asks again when the body breaks.
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch n := int64(len(body)); {
	case err != nil:
		return nil, translate(o, name, err)
	case n > limit:
		return nil, fmt.Errorf("azure: %s %s: %w", o, name, store.ErrTooLarge)
	case resp.ContentLength != nil && *resp.ContentLength != n:
		return nil, fmt.Errorf("azure: %s %s: %d of %d bytes came: %w", o, name, n, *resp.ContentLength, io.ErrUnexpectedEOF)
	}
	return body, nil
}

var (
	_ store.LeaseBreaker       = (*Store)(nil)
	_ store.ConditionalBreaker = (*Store)(nil)
)

// Break implements [store.LeaseBreaker]. The holder notices with its next call.
func (s *Store) Break(ctx context.Context, name string, period time.Duration) error {
	seconds := int32(lease.BreakNaturally)
	if period >= 0 {
		if period > 60*time.Second || period%time.Second != 0 {
			return fmt.Errorf("azure: break %s: a period of %s is not whole seconds up to 60 s", name, period)
		}
		seconds = int32(period / time.Second)
	}
	_, err := s.breakLease(ctx, name, seconds, nil)
	return translate(breaking, name, err)
}

// BreakUnchanged implements [store.ConditionalBreaker]: one Lease Blob request with If-Match
// (https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations).
func (s *Store) BreakUnchanged(ctx context.Context, name, etag string) error {
	match, err := ifMatch(etag)
	if err != nil {
		return fmt.Errorf("azure: break %s: %w", name, err)
	}
	resp, err := s.breakLease(ctx, name, 0, match)
	got, err := stamped(breaking, name, resp.ETag, resp.Date, err)
	if err == nil && got.ETag != etag {
		err = fmt.Errorf("azure: break %s: the lease is broken, and the ETag is %s, not %s: something on the way dropped the condition", name, got.ETag, etag)
	}
	return err
}

// breakLease ends the lease after so many seconds, under a condition or none.
func (s *Store) breakLease(ctx context.Context, name string, seconds int32, match *blob.ModifiedAccessConditions) (lease.BlobBreakResponse, error) {
	l, err := lease.NewBlobClient(s.container.NewBlobClient(name), nil)
	if err != nil {
		return lease.BlobBreakResponse{}, err
	}
	return l.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: &seconds, ModifiedAccessConditions: match})
}
