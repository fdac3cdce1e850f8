// Package soloist is Soloist over a store that its replicas share.
package soloist

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/bench/internal/replica"
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
	return s.Run(ctx)
}
