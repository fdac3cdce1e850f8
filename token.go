package soloist

import (
	"context"
	"time"
)

// decide plans what to do under a hold. An entry that was never claimed may follow
// one that was claimed and deleted, so its first token must be larger than any of
// that one. The hold waits for a second in which no older entry was claimed, and
// takes the token from that.
func (w *worker) decide(stop context.Context, h *hold) (next plan, todo bool) {
	next, todo = w.plan(&w.rec, w.dueTime())
	if !next.run || !w.rec.Claimed.IsZero() || h.dated.IsZero() {
		return next, todo
	}
	now, ok := h.after(stop, w.existed(h).Add(time.Second))
	if !ok {
		return plan{}, false
	}
	next, todo = w.plan(&w.rec, w.dueTime())
	if next.run {
		next.record.Epoch = max(next.record.Epoch, now.Truncate(time.Second).UnixMicro())
	}
	return next, todo
}

// existed is the date of an answer to this replica that proves that the entry
// existed, so that an older one was deleted before: the answer to the acquisition,
// or to the first look that showed the ETag which was acquired. The date of the
// creation would not do: that request may have been under way for long.
func (w *worker) existed(h *hold) time.Time {
	if w.still.etag == h.etag && !w.still.date.IsZero() {
		return earlier(w.still.date, h.dated)
	}
	return h.dated
}

// after waits until the service's clock is past t for certain, and returns its
// earliest reading then. It returns false if a stop or the loss of the lease comes
// first.
func (h *hold) after(stop context.Context, t time.Time) (now time.Time, ok bool) {
	for {
		lo, _, _ := h.clock.now()
		left := t.Sub(lo)
		if left < 0 {
			return lo, true
		}
		left += left/(driftShare-1) + time.Millisecond // the earliest reading is slow on purpose
		if !waitFor(stop, h.held, left) {
			return lo, false
		}
	}
}
