package azure

import (
	"bytes"
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/soloist-go/soloist/store"
)

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
	body := streaming.NopCloser(bytes.NewReader(bytes.Clone(b))) // see Save
	resp, err := s.container.NewAppendBlobClient(name).AppendBlock(ctx, body, &appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &size},
	})
	if err != nil {
		return translate(appendLog, name, err)
	}
	_, err = stamped(appendLog, name, resp.ETag, resp.Date)
	return err
}

// createLog makes an empty log. It does not touch an existing log.
func (s *Store) createLog(ctx context.Context, name string) error {
	none := azcore.ETagAny
	put := func() error {
		_, err := s.container.NewAppendBlobClient(name).Create(ctx, &appendblob.CreateOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &none}},
		})
		return err
	}
	err := put()
	if bloberror.HasCode(err, bloberror.ContainerNotFound) {
		if err := s.createContainer(ctx); err != nil {
			return err
		}
		err = put()
	}
	if bloberror.HasCode(err, bloberror.BlobAlreadyExists) {
		return nil
	}
	return translate(createLog, name, err)
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
	if _, err := stamped(readLog, name, resp.ETag, resp.Date); err != nil {
		return nil, err
	}
	return readBody(readLog, name, &resp, int64(n))
}

// Logs implements [store.Appender]: a request for each 5,000 logs.
func (s *Store) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	prefix := store.LogName(entry, "")
	pages := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if bloberror.HasCode(err, bloberror.ContainerNotFound) {
			return nil
		}
		if err != nil {
			return translate(list, entry, err)
		}
		if page.Segment == nil {
			continue
		}
		for _, item := range page.Segment.BlobItems {
			if item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil {
				return fmt.Errorf("azure: %s %s: the answer has no name or no length: it is not from the Blob service", list, entry)
			}
			if !f(*item.Name, *item.Properties.ContentLength) {
				return nil
			}
		}
	}
	return nil
}

// RemoveLog implements [store.Appender].
func (s *Store) RemoveLog(ctx context.Context, name string) error {
	_, err := s.container.NewBlobClient(name).Delete(ctx, nil)
	return translate(remove, name, err)
}
