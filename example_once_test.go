package soloist_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// Three replicas of a new version start. One of them migrates the database, and the others wait for
// it: all are ready only after that.
func ExampleOnce() {
	store := &local.Memory{}
	var replicas sync.WaitGroup
	for range 3 {
		migration := &soloist.Once{
			Name:  "migrate",
			Key:   "v2.1.0", // the version of the build: the next one is another migration
			Store: store,
			Do: func(ctx context.Context, run *soloist.Run) error {
				fmt.Println("the database is migrated by", run.ID())
				return nil
			},
			Retry:  soloist.Retry{MaxTries: 3}, // on all replicas together
			Logger: slog.New(slog.DiscardHandler),
		}
		replicas.Go(func() {
			if err := migration.Run(context.Background()); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("ready")
		})
	}
	replicas.Wait()
	// Output:
	// the database is migrated by migrate@v2.1.0
	// ready
	// ready
	// ready
}
