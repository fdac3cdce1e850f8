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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

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
	stamp, err := stamped(readDocument, name, resp.ETag, resp.Date, nil)
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
	o, conditions := createDocument, unless(anything)
	if match, err := ifMatch(etag); err == nil {
		o, conditions = writeDocument, &blob.AccessConditions{ModifiedAccessConditions: match}
	}
	if n := len(body); n > store.MaxDocument {
		return store.Revision{}, fmt.Errorf("azure: %s %s: the document has %d bytes, more than %d", o, name, n, store.MaxDocument)
	}
	options := &upload{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &contentType}, AccessConditions: conditions}
	if o == writeDocument {
		return s.put(ctx, o, name, body, options)
	}
	return s.insert(ctx, o, name, body, options)
}

// A log is an append blob, which takes 50,000 blocks
// (https://learn.microsoft.com/rest/api/storageservices/append-block).
var _ store.Appender = (*Store)(nil)

// Append implements [store.Appender]: one request; of a new log up to four.
func (s *Store) Append(ctx context.Context, name string, size int64, b []byte) error {
	if n := len(b); n < 1 || n > store.MaxAppend {
		return fmt.Errorf("azure: %s %s: %d bytes are not 1 to %d", appendLog, name, n, store.MaxAppend)
	}
	if size == 0 {
		if err := s.createLog(ctx, name); err != nil {
			return err
		}
	}
	body := streaming.NopCloser(bytes.NewReader(bytes.Clone(b))) // see put
	resp, err := s.container.NewAppendBlobClient(name).AppendBlock(ctx, body, &appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &size},
	})
	_, err = stamped(appendLog, name, resp.ETag, resp.Date, err)
	return err
}

// createLog makes an empty log. It does not touch an existing log.
func (s *Store) createLog(ctx context.Context, name string) error {
	return s.inContainer(ctx, func() error {
		_, err := s.container.NewAppendBlobClient(name).Create(ctx, &appendblob.CreateOptions{AccessConditions: unless(anything)})
		if bloberror.HasCode(err, bloberror.BlobAlreadyExists) {
			return nil
		}
		return translate(createLog, name, err)
	})
}

// ReadLog implements [store.Appender]: one request.
func (s *Store) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	resp, err := s.container.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: int64(n)}})
	if bloberror.HasCode(err, bloberror.InvalidRange) { // it ends before
		return nil, nil
	}
	if err != nil {
		return nil, translate(readLog, name, err)
	}
	defer resp.Body.Close()
	if _, err := stamped(readLog, name, resp.ETag, resp.Date, nil); err != nil {
		return nil, err
	}
	return readBody(readLog, name, &resp, int64(n))
}

// Logs implements [store.Appender]: a request for each 5,000 logs.
func (s *Store) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	return s.each(ctx, entry, store.LogName(entry, ""), func(item *container.BlobItem, _ *time.Time) (bool, error) {
		if item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil {
			return false, fmt.Errorf("azure: %s %s: the answer has no name or no length: it is not from the Blob service", list, entry)
		}
		return f(*item.Name, *item.Properties.ContentLength), nil
	})
}

// RemoveLog implements [store.Appender].
func (s *Store) RemoveLog(ctx context.Context, name string) error {
	_, err := s.container.NewBlobClient(name).Delete(ctx, nil)
	return translate(remove, name, err)
}
