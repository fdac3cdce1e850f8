package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// ErrUntold is what Unlock returns after it has ended the lease, if it could not
// write so into the record.
var ErrUntold = errors.New("the lease is ended, but the record does not tell of it")

const unlockTries = 3 // a write of the last holder may come between

// Unlock ends the lease of the job, whichever replica has it.
func (r *Runner) Unlock(ctx context.Context, now bool) error {
	breaker, ok := r.client.Store.(store.LeaseBreaker)
	switch {
	case r.job.EveryReplica:
		return fmt.Errorf("%s runs on each replica: it has no lease", r.job.Name)
	case !ok:
		return errors.New("the store cannot end a lease: it is none of this module's, and no LeaseBreaker")
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

// tellUnlocked writes into the record of a run that its lease was ended, unless
// the run is over or settled. The status stays, and no token is spent: so the
// next holder waits as after any lease that did not expire by itself.
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
		if err = r.annotate(ctx, func(rec *store.Record) { rec.Unlocked = by }); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return err
}
