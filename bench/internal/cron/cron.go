// Package cron is robfig/cron, which the peers use that elect a leader, and for the schedules of those without a cron text.
package cron

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// Parse is the schedule of a job.
func Parse(j replica.Job) (cron.Schedule, error) {
	return cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(j.Cron())
}

// Run has the jobs of a replica run at their ticks while it leads, until ctx ends. A fleet that only leads has none.
func Run(ctx context.Context, w replica.Settings, leads func() bool) error {
	c := cron.New(cron.WithLocation(time.UTC))
	for _, j := range w.Jobs {
		schedule, err := Parse(j)
		if err != nil {
			return err
		}
		c.Schedule(schedule, cron.FuncJob(func() {
			if leads() {
				_ = w.Do(ctx, j, j.Tick(time.Now())) // it ends early only as ctx does
			}
		}))
	}
	if !w.Leads {
		c.Start()
	}
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}
