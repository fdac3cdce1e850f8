package azure

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

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
