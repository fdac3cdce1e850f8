package soloist

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/runner"
)

// A Backfill says which ticks of a job are to be run again. They have their outcome already: they were
// missed, or their runs have to be repeated, or they are older than the job.
type Backfill struct {
	From, To time.Time // the range, with both ends; it ends before the first tick without an outcome

	// All takes all ticks of the range. Otherwise those that were missed, as far as the history of the
	// record shows; a range that begins before its history is refused.
	All bool

	// Parallel is how many ticks are run at a time, from 1 to 16. Zero is 1. They are claimed together and run
	// in parallel on one replica, under one lease and with one token, and the next ones are claimed when all of them
	// have returned; so a tick of the job that is due waits for the longest of them. Their runs share no checkpoint: Save
	// and Load return an error. A job of a group runs one at a time.
	Parallel int
}

// A BackfillPlan is what a backfill would do.
type BackfillPlan struct {
	Ticks       int // up to 100,000
	First, Last time.Time
}

// PlanBackfill returns which ticks a backfill would run, and changes nothing. It reads the record.
//
// An [Order] of store.OrderBackfill has them run, on whichever replicas are up, in their order one at a
// time or Parallel at a time. A tick that is due, and a manual run that was ordered, come first. Each tick has one outcome,
// also if replicas die in between: where the runner of a tick died, Interrupted says what becomes of it. The
// outcomes are in events and logs and are counted in [JobStatus], and not in the history of the record. They move
// no watermark, and neither StartingDeadline nor Retry.PauseAfter applies. While the job is paused the backfill waits.
//
// [ErrRefused]: the range is wrong, has no such ticks or too many. fs.ErrNotExist: the job has no entry.
func (s *Scheduler) PlanBackfill(ctx context.Context, job string, b Backfill) (BackfillPlan, error) {
	r, err := s.runner(job)
	switch {
	case err != nil:
		return BackfillPlan{}, err
	case r.Singleton() || r.EveryReplica():
		return BackfillPlan{}, control.Refuse(fmt.Errorf("%s has no ticks that are run once: it is a singleton, or runs on each replica", job))
	}
	plan, err := r.PlanBackfill(ctx, runner.Range(b))
	if err != nil {
		return BackfillPlan{}, fmt.Errorf("backfill %s: %w", job, err)
	}
	return BackfillPlan{plan.Ticks, plan.First, plan.Last}, nil
}
