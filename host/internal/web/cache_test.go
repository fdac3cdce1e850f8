package web_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/store"
)

// A reading of many jobs has more time than one of a few: with the same, a replica of many would
// never have an answer.
func TestManyJobsHaveMoreTime(t *testing.T) {
	for jobs, want := range map[int]int{10: 0, 2000: 1} {
		synctest.Test(t, func(t *testing.T) {
			cache := web.NewCache(func(ctx context.Context) ([]soloist.JobStatus, error) {
				select {
				case <-time.After(3 * time.Second):
					return []soloist.JobStatus{{Name: "job", Lease: store.Available}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}, nil, nil)
			cache.Jobs = jobs
			cache.Statuses(t.Context())
			cache.Wait()
			if got := len(cache.Statuses(t.Context())); got != want {
				t.Errorf("%d jobs: got %d statuses, want %d", jobs, got, want)
			}
			cache.Wait()
		})
	}
}
