package soloist

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// An occupation is a lease under which no run is recorded, as far as this replica
// has seen without a break.
type occupation struct {
	etag  string
	at    time.Time // monotonic: when it was first seen
	last  time.Time // monotonic: when it was last seen
	since time.Time // at, by the service's clock
}

// look takes in one look at the entry.
func (o *occupation) look(e *Entry, r *Record, now time.Time) {
	switch {
	case !e.State.Live() || r.mayRun():
		*o = occupation{}
	case o.etag != e.ETag || time.Since(o.last) > 2*maxSleep:
		*o = occupation{etag: e.ETag, at: time.Now(), since: now}
	}
	o.last = time.Now()
}

// An occupiedError is a lease that some client holds for longer than a replica
// needs that is about to claim.
type occupiedError struct {
	job   string
	since time.Time
}

func (e *occupiedError) Error() string {
	return fmt.Sprintf("leased since %s, or longer, by a client that claims nothing: `unlock %s` frees it", e.since.UTC().Format(time.RFC3339), e.job)
}

// occupiedAfter is the time after which a lease without a claim is no replica's:
// that one holds off for a lease at most, then claims. The lease is the longer of
// this replica's and the record's.
func (w *worker) occupiedAfter(r *Record) time.Duration {
	return 2*max(w.length, time.Duration(r.Lease)) + 5*time.Second
}

// occupied returns why there is no use in waiting for the lease that was seen
// last, nil if there is.
func (w *worker) occupied() error {
	o := w.occupation
	switch {
	case o.at.IsZero() || time.Since(o.at) <= w.occupiedAfter(&w.rec):
		return nil
	case w.denied != nil: // the lease may be one that this replica left, or another whose writes fail
		return w.denied
	}
	return &occupiedError{w.job, o.since}
}

// awaitLease waits beside a lease under which no run is recorded. Its holder is
// about to claim, or died before it could, or is no replica at all.
func (w *worker) awaitLease() time.Duration {
	if err := w.occupied(); err != nil {
		w.notice(slog.LevelWarn, err)
		return w.again(maxSleep)
	}
	w.soon = true
	return w.again(w.dice.jitter(w.length / 6))
}

// occupiedStatus returns that a client that claims nothing has the lease: as this
// replica has seen it, or because a tick has been due for too long.
func (w *worker) occupiedStatus(st *JobStatus) error {
	if !st.Lease.Live() || st.Record.mayRun() {
		return nil
	}
	seen := w.state.get().err
	if err, ok := errors.AsType[*occupiedError](seen); ok {
		return err
	}
	if _, denied := errors.AsType[*deniedError](seen); denied { // the lease may be its own
		return nil
	}
	if late := w.dueTime().Sub(st.Next); !st.Next.IsZero() && late > w.occupiedAfter(&st.Record) {
		return fmt.Errorf("leased by a client that has claimed nothing in the %s since a tick came due: if that goes on, `unlock %s` frees it", late.Round(time.Second), w.job)
	}
	return nil
}
