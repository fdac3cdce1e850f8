//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
)

// work is a job of each kind, all due often.
func work() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "beat", Schedule: "@every 5s", Do: func(ctx context.Context, run *soloist.Run) error {
			for n := range 3 {
				if err := errors.Join(proctest.Pause(ctx, 500*time.Millisecond), run.Heartbeat(fmt.Sprint("page ", n))); err != nil {
					return err
				}
			}
			return nil
		}},
		soloist.Job{Name: "sad", Schedule: "@every 20s", Do: func(context.Context, *soloist.Run) error { return errors.New("no paper") }},
		soloist.Job{Name: "cache", Schedule: "@every 10s", EveryReplica: true, Do: func(context.Context, *soloist.Run) error { return nil }},
		soloist.Singleton{Name: "feed", Do: func(ctx context.Context, run *soloist.Run) error {
			for n := 0; ; n++ {
				if err := errors.Join(proctest.Pause(ctx, 2*time.Second), run.Save(ctx, n)); err != nil {
					return err
				}
			}
		}},
	}
}
