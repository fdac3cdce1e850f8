package soloist

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
)

// NextDue returns when a replica is wanted next, by the store's clock: now or before, if something is left to do; zero, if
// nothing will ever be. It is for a platform that has no replica up until then. It reads every record once, as
// [Scheduler.Status] does, and changes nothing.
//
// A replica is wanted at the next tick of each job, and at once for a tick that is due, for a run whose runner has died,
// for a tick that waits for another attempt, for a run or a backfill that was ordered. While a run is under way,
// wherever that is, one is wanted when its lease would end if its holder died now. A tick that has not succeeded by
// FinishBy is to be reported. A job that is paused wants none, until the pause ends by itself; nor does a job that is
// over. Nor do singletons and jobs of EveryReplica: they run on replicas that are up.
//
// If a record, or the operators' orders, cannot be read, a replica is wanted in a minute. A record that this program cannot
// use wants none before the next tick: only a person can help. The error is Validate's; the time
// returned with it means nothing.
func (s *Scheduler) NextDue(ctx context.Context) (time.Time, error) {
	if err := s.Validate(); err != nil {
		return time.Time{}, err
	}
	return runner.Wanted(ctx, s.core.runners), nil
}
