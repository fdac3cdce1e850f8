// Package soloist is Soloist over a store that its replicas share.
package soloist

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// Run has the jobs of a replica in a scheduler, until ctx ends.
func Run(ctx context.Context, w replica.Settings, kept store.Store) error {
	s := soloist.Scheduler{
		Store: kept, App: "bench", Replica: w.Name, Grace: 2 * time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if w.Leads {
		s.Singletons = []soloist.Singleton{{Name: "leader", Lease: w.Lease, Do: func(ctx context.Context, _ *soloist.Run) error {
			w.Lead(ctx)
			return nil
		}}}
		return s.Run(ctx)
	}
	for _, j := range w.Jobs {
		job := soloist.Job{
			Name: j.Name, Schedule: j.Cron(), Lease: 15 * time.Second, ClaimAhead: w.Ahead,
			Do: func(ctx context.Context, run *soloist.Run) error { return w.Do(ctx, j, run.Tick) },
		}
		s.Jobs = append(s.Jobs, job)
	}
	if w.History {
		defer keep(ctx, &s)()
	}
	return s.Run(ctx)
}

// keep has the outcomes logged as host does by default. The caller calls what it returns at the end.
func keep(ctx context.Context, s *soloist.Scheduler) (stop func()) {
	logged := &history.Writer{Store: s.Store.(keeper), App: s.App, Keep: history.Keep{Age: 30 * 24 * time.Hour}}
	s.Events = logged.Take
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { logged.Run(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}

// A keeper keeps logs beside entries.
type keeper interface {
	store.Store
	store.Appender
}
