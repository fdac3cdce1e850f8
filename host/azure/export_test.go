package azure

import "context"

// DeleteContainer is for a test that has made one.
func (s *Store) DeleteContainer(ctx context.Context) error {
	_, err := s.container.Delete(ctx, nil)
	return err
}
