// River is a replica of the bench: River's periodic jobs, as its page and examples set them up. The leader enqueues the jobs, and
// any replica works them.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/soloist-go/soloist/bench/internal/cron"
	"github.com/soloist-go/soloist/bench/internal/database"
	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	pool, err := database.Open(ctx, w)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	err = database.Prepare(ctx, pool, func() error {
		_, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
	if err != nil {
		return err
	}
	periodic, err := enqueued(w)
	if err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[tick]) error {
		return w.Do(ctx, w.Jobs[job.Args.Job], job.ScheduledAt)
	}))
	client, err := river.NewClient(driver, &river.Config{
		PeriodicJobs: periodic, Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return client.Stop(stop)
}

// A tick is what River enqueues for a tick of a job; the time is in its own column.
type tick struct {
	Job int `json:"job"` // which
}

func (tick) Kind() string { return "tick" }

// enqueued are the jobs as the leader enqueues them.
func enqueued(w replica.Settings) (all []*river.PeriodicJob, err error) {
	for i, j := range w.Jobs {
		schedule, err := cron.Parse(j)
		if err != nil {
			return nil, err
		}
		all = append(all, river.NewPeriodicJob(schedule, func() (river.JobArgs, *river.InsertOpts) {
			if i == 0 {
				w.Enqueues(j)
			}
			return tick{i}, nil
		}, nil))
	}
	return all, nil
}
