// Gocron is a replica of the bench: gocron with a lock in Redis. The lock is what the project's own
// module gocron-redis-lock makes of redsync, with one try, as its page says.
package main

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	client := redis.NewClient(&redis.Options{Addr: w.Service})
	defer client.Close()
	s, err := gocron.NewScheduler(
		gocron.WithDistributedLocker(locker{redsync.New(goredis.NewPool(client)), w.Space}),
		gocron.WithClock(clock{clockwork.NewRealClock(), w.Skew}), gocron.WithLocation(time.UTC))
	if err != nil {
		return err
	}
	for _, j := range w.Jobs {
		_, err := s.NewJob(gocron.CronJob(j.Cron(), true), gocron.NewTask(func() error {
			return w.Do(ctx, j, j.Tick(w.Now()))
		}), gocron.WithName(j.Name))
		if err != nil {
			return err
		}
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown()
}

// A locker locks a job while it runs.
type locker struct {
	sync  *redsync.Redsync
	space string
}

func (l locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m := l.sync.NewMutex(l.space+"/"+key, redsync.WithTries(1))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return lock{m}, nil
}

type lock struct{ mutex *redsync.Mutex }

func (l lock) Unlock(ctx context.Context) error {
	_, err := l.mutex.UnlockContext(ctx)
	return err
}

// A clock is wrong by a constant.
type clock struct {
	clockwork.Clock
	ahead time.Duration
}

func (c clock) Now() time.Time                  { return c.Clock.Now().Add(c.ahead) }
func (c clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
