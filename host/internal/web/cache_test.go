package web_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/store"
)

// A reading of many jobs has more time than one of a few: with the same, a replica of many would
// never have an answer.
func TestManyJobsHaveMoreTime(t *testing.T) {
	for jobs, want := range map[int]int{10: 0, 2000: 1} {
		synctest.Test(t, func(t *testing.T) {
			cache := web.NewCache(func(ctx context.Context) []desk.Status {
				select {
				case <-time.After(3 * time.Second):
					return []desk.Status{{Name: "job", Lease: store.Available}}
				case <-ctx.Done():
					return []desk.Status{{Name: "job", Err: ctx.Err()}}
				}
			}, nil, nil)
			cache.Jobs = jobs
			cache.Statuses(t.Context())
			cache.Wait()
			got := 0
			for _, st := range cache.Statuses(t.Context()) {
				if st.Err == nil {
					got++
				}
			}
			if got != want {
				t.Errorf("%d jobs: got %d statuses, want %d", jobs, got, want)
			}
			cache.Wait()
		})
	}
}
