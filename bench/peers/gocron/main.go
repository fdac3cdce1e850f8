// Gocron is a replica of the bench: gocron with a lock in Redis. The lock is what the project's own
// module gocron-redis-lock makes of redsync, with one try, as its page says.
package main

import (
	"context"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/soloist-go/soloist/bench/internal/gocron"
	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	client := redis.NewClient(&redis.Options{Addr: w.Service})
	defer client.Close()
	sync := redsync.New(goredis.NewPool(client))
	return gocron.Run(ctx, w, func(ctx context.Context, job string) (gocron.Unlock, error) {
		m := sync.NewMutex(w.Space+"/"+job, redsync.WithTries(1))
		return func(ctx context.Context) error {
			_, err := m.UnlockContext(ctx)
			return err
		}, m.LockContext(ctx)
	})
}
