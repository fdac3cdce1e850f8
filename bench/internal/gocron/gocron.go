// Package gocron is gocron with a lock that its replicas share.
package gocron

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// A Lock locks a job for one run, and returns what unlocks it, or an error if another replica has it.
type Lock func(ctx context.Context, job string) (unlock Unlock, err error)

// Lock implements gocron's Locker.
func (l Lock) Lock(ctx context.Context, job string) (gocron.Lock, error) { return l(ctx, job) }

// An Unlock ends a lock.
type Unlock func(ctx context.Context) error

// Unlock implements gocron's Lock.
func (u Unlock) Unlock(ctx context.Context) error { return u(ctx) }

// Run has the jobs of a replica run at their ticks if it gets the lock, until ctx ends.
func Run(ctx context.Context, w replica.Settings, lock Lock) error {
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(lock), gocron.WithLocation(time.UTC))
	if err != nil {
		return err
	}
	for _, j := range w.Jobs {
		_, err := s.NewJob(gocron.CronJob(j.Cron(), true), gocron.NewTask(func() error {
			return w.Do(ctx, j, j.Tick(time.Now()))
		}), gocron.WithName(j.Name))
		if err != nil {
			return err
		}
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown()
}
