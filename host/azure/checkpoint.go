package azure

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/soloist-go/soloist/store"
)

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
	// A copy, because a request whose context ends may still be read from
	// after we have returned, when the caller uses its bytes again.
	body := streaming.NopCloser(bytes.NewReader(bytes.Clone(checkpoint)))
	resp, err := h.blob.Upload(ctx, body, &blockblob.UploadOptions{
		Metadata:         metadata(record),
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &contentType},
		AccessConditions: guards,
	})
	if err != nil {
		return store.Revision{}, translate(save, h.name, err)
	}
	h.store.noteVersion(resp.VersionID)
	return stamped(save, h.name, resp.ETag, resp.Date)
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
