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

// work is a job of each kind, all due often, and so many times as often as the pace says.
func work(pace int) []soloist.Work {
	each := func(d time.Duration) time.Duration { return d / time.Duration(pace) }
	every := func(d time.Duration) string { return "@every " + each(d).String() }
	return []soloist.Work{
		soloist.Job{Name: "beat", Schedule: every(5 * time.Second), Do: func(ctx context.Context, run *soloist.Run) error {
			for n := range 3 {
				if err := errors.Join(proctest.Pause(ctx, each(500*time.Millisecond)), run.Heartbeat(fmt.Sprint("page ", n))); err != nil {
					return err
				}
			}
			return nil
		}},
		soloist.Job{Name: "sad", Schedule: every(20 * time.Second), Do: func(context.Context, *soloist.Run) error { return errors.New("no paper") }},
		soloist.Job{Name: "cache", Schedule: every(10 * time.Second), EveryReplica: true, Do: func(context.Context, *soloist.Run) error { return nil }},
		soloist.Singleton{Name: "feed", Do: func(ctx context.Context, run *soloist.Run) error {
			for n := 0; ; n++ {
				if err := errors.Join(proctest.Pause(ctx, each(2*time.Second)), run.Save(ctx, n)); err != nil {
					return err
				}
			}
		}},
	}
}
