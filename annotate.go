package soloist

import (
	"context"
	"time"
)

// acquireSeen acquires the lease of the entry as it was last seen, free.
func (w *worker) acquireSeen(ctx context.Context) (*hold, error) {
	length := w.length
	if w.rec.mayRun() {
		// The last runner may still trust its lease. Ours must not end before
		// that one would: then a lease that is seen expired ends all trust.
		length = max(length, time.Duration(w.rec.Lease))
	}
	return w.acquire(ctx, w.entry.ETag, &w.rec, length)
}

// annotate changes the record of an entry that was seen free, without a claim:
// acquire, one write, release. It spends no token and starts no run. A write of
// unclear outcome may be released after: it cannot be applied once its lease has
// gone, and it claims nothing.
func (w *worker) annotate(ctx context.Context, draft func(*Record)) error {
	h, err := w.acquireSeen(ctx)
	if err != nil {
		return err
	}
	err = h.write(ctx, draft, nil, h.twice)
	if rerr := h.release(ctx); rerr != nil {
		w.log.Debug("the lease was not released and will run out", "error", rerr)
	}
	if err != nil {
		return err
	}
	w.rec, w.etag = h.rec, h.etag
	w.entry = &Entry{Stamp: Stamp{ETag: h.etag}, State: Available}
	w.sight()
	w.reached()
	w.mayWrite()
	return nil
}
