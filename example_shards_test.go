package soloist_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// Each tick is done in four parts, by whichever replicas are up. Here it is one, as on a platform
// that wakes the program up.
func ExampleJob_shards() {
	customers := []string{"Ada", "Bob", "Cleo", "Dan", "Eve", "Finn"}
	var bills [4][]string
	s := &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Jobs: []soloist.Job{{
			Name: "billing", Schedule: "@every 1s", Shards: 4,
			Do: func(_ context.Context, run *soloist.Run) error {
				for id, name := range customers {
					if id%run.Shards == run.Shard {
						bills[run.Shard] = append(bills[run.Shard], name)
					}
				}
				return nil
			},
		}},
	}
	report, err := s.RunDue(context.Background(), soloist.Wake{Tick: time.Now().Truncate(time.Second)})
	for i, j := range report.Jobs {
		fmt.Println(j.Job, j.Ran[0].Status, bills[i])
	}
	fmt.Println(err)
	// Output:
	// billing-0 succeeded [Ada Eve]
	// billing-1 succeeded [Bob Finn]
	// billing-2 succeeded [Cleo]
	// billing-3 succeeded [Dan]
	// <nil>
}
