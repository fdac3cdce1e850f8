package azure

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/soloist-go/soloist/store"
)

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
	return err
}

// BreakUnchanged implements [store.ConditionalBreaker]: one Lease Blob request with If-Match
// (https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations).
func (s *Store) BreakUnchanged(ctx context.Context, name, etag string) error {
	match, err := ifMatch(etag)
	if err != nil {
		return fmt.Errorf("azure: break %s: %w", name, err)
	}
	resp, err := s.breakLease(ctx, name, 0, match)
	if err != nil {
		return err
	}
	got, err := stamped(breaking, name, resp.ETag, resp.Date)
	if err == nil && got.ETag != etag {
		err = fmt.Errorf("azure: break %s: the lease is broken, and the ETag is %s, not %s: something on the way dropped the condition", name, got.ETag, etag)
	}
	return err
}

// breakLease ends the lease after so many seconds, under a condition or none.
func (s *Store) breakLease(ctx context.Context, name string, seconds int32, match *blob.ModifiedAccessConditions) (lease.BlobBreakResponse, error) {
	l, err := lease.NewBlobClient(s.container.NewBlobClient(name), nil)
	if err != nil {
		return lease.BlobBreakResponse{}, fmt.Errorf("azure: break %s: %w", name, err)
	}
	resp, err := l.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: &seconds, ModifiedAccessConditions: match})
	return resp, translate(breaking, name, err)
}
