// Package runner does the ticks of jobs on one replica: it reads a job's entry,
// decides by internal/plan, acquires the lease, claims, runs by
// internal/supervise, writes the outcome and releases.
package runner

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/store"
)

// A Replica is what the jobs of one process share.
type Replica struct {
	App     string
	Name    string
	Store   store.Store
	Grace   time.Duration
	Overrun func(job string, cause error) // nil: none
	Wall    func() time.Time
	Clock   *lease.Clock
	Logger  *slog.Logger
	Lines   *logqueue.Queue // of what the replica itself logs

	Created time.Duration // elapsed

	start  sync.Once
	born   time.Time // Created, by the service's clock
	jobs   []*state
	outage outage
}

// Started is when this replica started, by the service's clock as well as it is
// known, so that replicas can tell which of them is the younger. It is called after the first
// answer of the store.
func (r *Replica) Started() time.Time {
	r.start.Do(func() {
		r.born = r.Clock.Best().Add(r.Created - r.Clock.Elapsed()).Round(0).UTC()
	})
	return r.born
}

// degraded returns why this replica takes nothing new, nil if it does: a run that
// cannot be ended is a reason to restart the process.
func (r *Replica) degraded() error {
	for _, s := range r.jobs {
		st := s.get()
		if cause := st.overruns(); cause != nil && !s.everyReplica {
			return fmt.Errorf("%s goes on though its context has ended (%w): this replica takes nothing new until it returns or the process is restarted", s.job, cause)
		}
	}
	return nil
}

// FlushLog waits for the lines of the log, but not for long.
func (r *Replica) FlushLog() { r.Lines.Wait(logqueue.LastLines) }

func logAt(log *slog.Logger, level slog.Level, text string, args ...any) {
	log.Log(context.Background(), level, text, args...)
}
