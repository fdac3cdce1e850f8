package soloist

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Unlocked tells that the lease of a run was ended at once. The run may go on
// until its holder notices, so the next holder waits before it claims.
type Unlocked struct {
	By string    `json:"by"` // the replica or operator that unlocked the job
	At time.Time `json:"at"` // by the store's clock
}

// Unlock ends the lease of a job or singleton, whichever replica has it: when it
// would have expired, or at once if now is set, while its holder may still work.
// The next holder waits for the length of the lease before it claims, since the
// last one may trust its lease until then. With now the record tells who has
// unlocked the job: it names Replica. [ErrLost]: there is no lease.
// [ErrUntold]: the lease is ended, and the record does not tell of it.
// fs.ErrNotExist: the job has no entry.
func (s *Scheduler) Unlock(ctx context.Context, job string, now bool) error {
	w, err := s.worker(job)
	if err != nil {
		return err
	}
	store, ok := s.Store.(Breaker)
	switch {
	case w.everywhere:
		return fmt.Errorf("%s runs on each replica: it has no lease", job)
	case !ok:
		return errors.New("the store cannot end a lease: it is none of this module's, and no Breaker")
	case !now:
		return store.Break(ctx, w.name, -1)
	}
	if err := store.Break(ctx, w.name, 0); err != nil {
		return err
	}
	m := s.newWorker(w.cell, w.state) // the worker itself may be busy
	m.duty, m.planner = w.duty, w.policy
	if err := m.tellUnlocked(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUntold, err)
	}
	return nil
}

// ErrUntold is what [Scheduler.Unlock] returns after it has ended the lease, if
// it could not write so into the record.
var ErrUntold = errors.New("the lease is ended, but the record does not tell of it")

// tellUnlocked writes into the record of a run that its lease was ended, unless
// the run is over or settled. The status stays, and no token is spent: so the
// next holder waits as after any lease that did not expire by itself.
func (w *worker) tellUnlocked(ctx context.Context) error {
	var err error
	for range unlockTries {
		if err = w.lookOnly(ctx); err != nil || !w.rec.mayRun() {
			return err
		}
		if w.entry.State.Live() {
			return fmt.Errorf("%w: the next holder was first", ErrHeld)
		}
		by := Unlocked{By: cut(w.Replica, maxUnlocker), At: w.clock.best().Truncate(time.Millisecond).UTC()}
		if err = w.annotate(ctx, func(r *Record) { r.Unlocked = by }); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return err
}

const (
	unlockTries = 3   // a write of the last holder may come between
	maxUnlocker = 100 // runes of Unlocked.By
)

// lookOnly reads the entry, and makes none.
func (w *worker) lookOnly(ctx context.Context) error {
	entry, err := w.read(ctx)
	if err != nil {
		return err
	}
	rec, err := decodeRecord(entry.Record, w.App, w.job)
	if err != nil {
		return &recordError{err}
	}
	w.known, w.entry, w.rec, w.etag = true, &entry, rec, entry.ETag
	return nil
}

// endReason is why a run that has not told its outcome is over. broken reports
// that its lease was broken when it was last seen.
func (r *Record) endReason(broken bool) string {
	switch {
	case !r.Unlocked.At.IsZero():
		return "unlocked by " + r.Unlocked.By
	case broken:
		return "unlocked"
	}
	return "its runner died"
}

// waits returns about when the run that r tells of, whose job was unlocked, can
// be followed by another; zero if it was not. Replicas that are up look at the
// entry once more, and wait for one lease from then on.
func (p *planner) waits(r *Record, now time.Time) time.Time {
	if r.Unlocked.At.IsZero() || !r.mayRun() {
		return time.Time{}
	}
	look, lease := lookEvery, max(p.lease, time.Duration(r.Lease))
	if p.urgent(r, now) {
		look = time.Duration(r.Lease)/3 + time.Second
	}
	return r.Unlocked.At.Add(look + lease)
}
