package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// ErrUntold is what Unlock returns if it has ended the lease and could not write that
// into the record. Then the next holder still waits, but the history cannot say who
// unlocked the job.
var ErrUntold = errors.New("the lease is ended, but the record does not say so")

// unlockTries allows for a last write of the old holder in between.
const unlockTries = 3

// Unlock ends the lease of the job, whichever replica holds it: now, or when it would have
// expired without a renewal. Only the first cuts a run short that may still trust its
// lease, so only the first is written into the record.
func (r *Runner) Unlock(ctx context.Context, now bool) error {
	breaker, ok := r.client.Store.(store.LeaseBreaker)
	switch {
	case r.job.EveryReplica:
		return fmt.Errorf("%s runs on each replica: it has no lease", r.job.Name)
	case !ok:
		return errors.New("the store cannot end a lease: it does not implement store.LeaseBreaker")
	case !now:
		return breaker.Break(ctx, r.client.Name, -1)
	}
	if err := breaker.Break(ctx, r.client.Name, 0); err != nil {
		return err
	}
	if err := r.beside("").tellUnlocked(ctx); err != nil { // the runner itself may be busy
		return fmt.Errorf("%w: %w", ErrUntold, err)
	}
	return nil
}

// tellUnlocked writes into the record who has ended the lease, unless the run is over or
// settled. It changes neither the status nor the token: the next holder has to see a run
// that may still go on, so that it waits as after any lease that did not expire by itself.
func (r *Runner) tellUnlocked(ctx context.Context) error {
	var err error
	for range unlockTries {
		if err = r.readOnly(ctx); err != nil || !r.view.rec.MayRun() {
			return err
		}
		if r.view.entry.State.Live() {
			return fmt.Errorf("%w: the next holder was first", store.ErrHeld)
		}
		by := store.Unlocked{By: r.replica.Name, At: r.now().Truncate(time.Millisecond).UTC()}
		if err = r.annotate(ctx, func(rec *store.Record) { rec.Run.Unlocked = by }); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return err
}
