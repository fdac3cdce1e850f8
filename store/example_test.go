package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// What a Scheduler does with an entry: create it, acquire its lease, write the record under the lease,
// release it.
func ExampleStore() {
	ctx := context.Background()
	var s store.Store = &local.Memory{}
	show := func() {
		e, err := s.Read(ctx, "app/job")
		fmt.Println(string(e.Record), e.State, err)
	}
	created, err := s.Create(ctx, "app/job", []byte("first"))
	if err != nil {
		fmt.Println(err)
	}
	show()
	l := s.Lease("app/job", "0b5c3a52-1c8e-4d0f-9a55-2f6f0d1f7c11")
	acquired, err := l.Acquire(ctx, 30*time.Second, created.ETag)
	if err != nil {
		fmt.Println(err)
	}
	if _, err := l.Write(ctx, acquired.ETag, []byte("second")); err != nil {
		fmt.Println(err)
	}
	show()
	if err := l.Release(ctx); err != nil {
		fmt.Println(err)
	}
	show()
	// Output:
	// first available <nil>
	// second leased <nil>
	// second available <nil>
}

func ExampleLeaseState_Live() {
	for _, s := range []store.LeaseState{store.Leased, store.Expired, store.Breaking, store.Broken} {
		fmt.Println(s, s.Live())
	}
	// Output:
	// leased true
	// expired false
	// breaking true
	// broken false
}

func ExampleLogName() {
	fmt.Println(store.LogName("app/job", "2026-11"))
	// Output: app/.log/job/2026-11
}
