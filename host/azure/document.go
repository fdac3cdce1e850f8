package azure

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/soloist-go/soloist/store"
)

// ReadDocument implements [store.Documenter]: one Get Blob. If the ETag is still etag,
// the service answers 304, which has no content.
func (s *Store) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	var raw *http.Response // the library does not return the status
	ctx = policy.WithCaptureResponse(ctx, &raw)
	resp, err := s.container.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: unless(etag)})
	if err != nil {
		return store.Document{Revision: store.Revision{Date: refusedAt(err)}}, translate(readDocument, name, err)
	}
	defer resp.Body.Close()
	if etag != "" && (raw.StatusCode == http.StatusNotModified || resp.ETag != nil && string(*resp.ETag) == etag) {
		return unchanged(name, etag, resp.Date)
	}
	stamp, err := stamped(readDocument, name, resp.ETag, resp.Date)
	if err != nil {
		return store.Document{}, err
	}
	if resp.LeaseState == nil {
		return store.Document{}, fmt.Errorf("azure: %s %s: the answer has no lease state: it is not from the Blob service", readDocument, name)
	}
	body, err := readBody(readDocument, name, &resp, store.MaxDocument)
	if err != nil {
		return store.Document{}, err
	}
	return store.Document{Revision: stamp, Body: body}, nil
}

// unchanged is the answer about a document that the caller has.
func unchanged(name, etag string, date *time.Time) (store.Document, error) {
	same := store.Document{Revision: store.Revision{ETag: etag}}
	if date != nil {
		same.Date = *date
	}
	return same, fmt.Errorf("azure: %s %s: %w", readDocument, name, store.ErrUnchanged)
}

// unless lets a read through if the blob has another ETag. Empty: in any case.
func unless(etag string) *blob.AccessConditions {
	if etag == "" {
		return nil
	}
	e := azcore.ETag(etag)
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &e}}
}

// WriteDocument implements [store.Documenter]: one Put Blob. A missing container is
// created for the first document, as for an entry.
func (s *Store) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	o, match := writeDocument, &blob.ModifiedAccessConditions{}
	if e := azcore.ETag(etag); etag != "" {
		match.IfMatch = &e
	} else {
		o, e = createDocument, azcore.ETagAny
		match.IfNoneMatch = &e
	}
	if n := len(body); n > store.MaxDocument {
		return store.Revision{}, fmt.Errorf("azure: %s %s: the document has %d bytes, more than %d", o, name, n, store.MaxDocument)
	}
	body = bytes.Clone(body) // the request may be read from after this call has returned: see Save
	put := func() (blockblob.UploadResponse, error) {
		return s.container.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
			HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &contentType},
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: match},
		})
	}
	return s.insert(ctx, o, name, put)
}
