// Package cron is robfig/cron, which the peers use that elect a leader.
package cron

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// A skewed schedule is that of a machine whose clock is wrong: the library asks the real one.
type skewed struct {
	cron.Schedule
	ahead time.Duration
}

func (s skewed) Next(now time.Time) time.Time {
	return s.Schedule.Next(now.Add(s.ahead)).Add(-s.ahead)
}

// Run has the jobs of a replica run at their ticks while it leads, until ctx ends.
func Run(ctx context.Context, w *replica.Worker, leads func() bool) error {
	c := cron.New(cron.WithLocation(time.UTC))
	for _, j := range w.Jobs {
		schedule, err := Parse(j)
		if err != nil {
			return err
		}
		c.Schedule(skewed{schedule, w.Skew}, cron.FuncJob(func() {
			if leads() {
				_ = w.Do(ctx, j, j.Tick(w.Now())) // a replica whose log is full shows as ticks that are lost
			}
		}))
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}

// Parse parses the schedule of a job.
func Parse(j replica.Job) (cron.Schedule, error) {
	return cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(j.Cron())
}
