package azure

import (
	"context"
)

// Delete removes an entry that nobody holds: otherwise [store.ErrLost], and
// fs.ErrNotExist. It is for scratch entries. A job's must stay: one made anew
// does not know which ticks were run.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := s.container.NewBlobClient(name).Delete(ctx, nil)
	return translate(remove, name, err)
}
