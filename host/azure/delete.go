package azure

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// Delete removes an entry that has no holder: otherwise [store.ErrLost], and
// fs.ErrNotExist. It is for scratch entries. A job's must stay: a new one
// does not know which ticks were run.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := s.container.NewBlobClient(name).Delete(ctx, nil)
	return translate(remove, name, err)
}

// Remove implements [store.Remover]: one Delete Blob, which the service refuses while the blob is
// leased.
func (s *Store) Remove(ctx context.Context, name, etag string) error {
	match, err := ifMatch(etag)
	if err != nil {
		return err
	}
	_, err = s.container.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: match}})
	return translate(remove, name, err)
}
