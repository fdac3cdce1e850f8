package soloist_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// An API may be called by two callers of all replicas at a time. Three replicas with two workers each
// keep to that together.
func ExampleLock_slots() {
	store := &local.Memory{}
	var calls, now, most atomic.Int64
	call := func(context.Context, *soloist.Run) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		calls.Add(1)
		return nil
	}
	var workers sync.WaitGroup
	for range 3 {
		api := &soloist.Lock{Name: "api", Store: store, Slots: 2}
		for range 2 {
			workers.Go(func() {
				if err := api.Do(context.Background(), call); err != nil {
					fmt.Println(err)
				}
			})
		}
	}
	workers.Wait()
	fmt.Println(calls.Load(), "calls, more than two at once:", most.Load() > 2)
	// Output: 6 calls, more than two at once: false
}
