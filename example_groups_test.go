package soloist_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// Six imports are due at once, and the database stands two of them at a time, over all replicas.
func ExampleScheduler_groups() {
	var runs, now, most atomic.Int64
	load := func(context.Context, *soloist.Run) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		runs.Add(1)
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	s := &soloist.Scheduler{Store: &local.Memory{}, Groups: map[string]int{"imports": 2}}
	for i := range 6 {
		s.Jobs = append(s.Jobs, soloist.Job{Name: fmt.Sprintf("import-%d", i), Schedule: "@every 1s", Group: "imports", Do: load})
	}
	tick := time.Now().Truncate(time.Second).Add(time.Second)
	if _, err := s.RunDue(context.Background(), soloist.Wake{Tick: tick}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("each has run:", runs.Load() >= 6, "- more than two at once:", most.Load() > 2)
	// Output: each has run: true - more than two at once: false
}
