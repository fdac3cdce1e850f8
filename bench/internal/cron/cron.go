// Package cron is robfig/cron, which the peers use that elect a leader.
package cron

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// A skewed schedule imitates a machine whose clock is wrong, since the library reads the real clock.
type skewed struct {
	cron.Schedule
	ahead time.Duration
}

func (s skewed) Next(now time.Time) time.Time {
	return s.Schedule.Next(now.Add(s.ahead)).Add(-s.ahead)
}

// Run has the jobs of a replica run at their ticks while it leads, until ctx ends. A fleet that only leads has none.
func Run(ctx context.Context, w replica.Settings, leads func() bool) error {
	c := cron.New(cron.WithLocation(time.UTC))
	for _, j := range w.Jobs {
		schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(j.Cron())
		if err != nil {
			return err
		}
		c.Schedule(skewed{schedule, w.Skew}, cron.FuncJob(func() {
			if leads() {
				_ = w.Do(ctx, j, j.Tick(w.Now())) // it ends early only as ctx does
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
