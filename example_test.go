package soloist_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// Three replicas share a store; each tick is run by one of them.
func Example() {
	store := &local.Memory{}
	ran := make(chan string, 100)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	for range 3 {
		s := &soloist.Scheduler{
			Store:  store,
			Logger: slog.New(slog.DiscardHandler),
			Jobs: []soloist.Job{{
				Name:     "report",
				Schedule: "@every 1s",
				Do: func(ctx context.Context, run *soloist.Run) error {
					ran <- run.ID()
					return nil
				},
			}},
		}
		go func() { done <- s.Run(ctx) }()
	}
	first, second := <-ran, <-ran
	stop()
	for range 3 {
		if err := <-done; err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("the same tick twice:", first == second)
	// Output: the same tick twice: false
}

func ExampleScheduler_Validate() {
	s := &soloist.Scheduler{
		Store: &local.Memory{},
		Jobs:  []soloist.Job{{Name: "report", Schedule: "61 * * * *", Timeout: -time.Second}},
	}
	fmt.Println(s.Validate() != nil)
	// Output: true
}

func ExampleScheduler_RunDue() {
	s := &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Jobs: []soloist.Job{{Name: "report", Schedule: "@hourly",
			Do: func(context.Context, *soloist.Run) error { return nil }}},
	}
	report, err := s.RunDue(context.Background(), soloist.Wake{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A new job owes nothing: its first tick is the next full hour.
	fmt.Println(len(report.Jobs[0].Ran), report.Next.Minute())
	// Output: 0 0
}

// A singleton runs on one replica until that stops or dies; then another takes
// over with a larger token.
func ExampleSingleton() {
	ctx, stop := context.WithCancel(context.Background())
	tail := soloist.Singleton{
		Name: "feed",
		Do: func(ctx context.Context, run *soloist.Run) error {
			fmt.Println("leading")
			stop()
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}
	if err := tail.Run(ctx, &local.Memory{}); err != nil {
		fmt.Println(err)
	}
	// Output: leading
}
