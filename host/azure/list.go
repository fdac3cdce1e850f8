package azure

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/soloist-go/soloist/store"
)

var _ store.Lister = (*Store)(nil)

// List implements [store.Lister]: a request for each 5,000 entries.
func (s *Store) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	return s.each(ctx, app, app+"/", func(item *container.BlobItem, date *time.Time) (bool, error) {
		if item.Name == nil || strings.HasPrefix(path.Base(*item.Name), ".") {
			return true, nil
		}
		e, err := listed(item, date)
		return err == nil && f(*item.Name, e), err
	})
}

// each calls f for the blobs whose names begin so, until it returns false or an error. The delimiter keeps out what is
// deeper, of which a page would else be full. Where there is no container, there are no blobs.
func (s *Store) each(ctx context.Context, what, prefix string, f func(*container.BlobItem, *time.Time) (bool, error)) error {
	pages := s.container.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{
		Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true}})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if bloberror.HasCode(err, bloberror.ContainerNotFound) {
			return nil
		}
		if err != nil {
			return translate(list, what, err)
		}
		if page.Segment == nil {
			continue
		}
		for _, item := range page.Segment.BlobItems {
			if further, err := f(item, page.Date); err != nil || !further {
				return err
			}
		}
	}
	return nil
}

// listed returns an entry from a page of a listing. The ETags there have no quotation marks; single
// answers have them.
func listed(item *container.BlobItem, date *time.Time) (store.Entry, error) {
	p := item.Properties
	if p == nil || p.ETag == nil || *p.ETag == "" || p.LeaseState == nil {
		return store.Entry{}, fmt.Errorf("azure: %s %s: the answer has no ETag or no lease state: it is not from the Blob service", list, *item.Name)
	}
	e := store.Entry{Revision: store.Revision{ETag: string(*p.ETag)}, Record: recordOf(item.Metadata), State: store.LeaseState(*p.LeaseState)}
	if !strings.HasPrefix(e.ETag, `"`) {
		e.ETag = `"` + e.ETag + `"`
	}
	if date != nil {
		e.Date = *date
	}
	if p.ContentLength != nil {
		e.Checkpoint = *p.ContentLength
	}
	return e, nil
}

// Apps returns the names before the slash of the container's blobs: the apps
// that have entries there. It asks for one page, which has up to 5,000 of them
// (https://learn.microsoft.com/rest/api/storageservices/list-blobs).
// fs.ErrNotExist: there is no such container.
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	page, err := s.container.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{}).NextPage(ctx)
	if err != nil {
		return nil, translate(list, s.name, err)
	}
	var apps []string
	if page.Segment == nil {
		return nil, nil
	}
	for _, p := range page.Segment.BlobPrefixes {
		if p.Name != nil {
			apps = append(apps, strings.TrimSuffix(*p.Name, "/"))
		}
	}
	return apps, nil
}
