package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// Take does something once under the lease of the job, as a run by hand under a request that
// nobody has made before. It does not wait for another holder: the error is then a HeldError. So
// it is for a claim or an outcome of this call that the store has not confirmed. A failure of the
// store that may pass is waited out until ctx ends, as RunNow does.
//
// Bar sees the record just before the lease is acquired; nil: everything is allowed. If it returns
// an error, Take returns that. The store refuses the lease if the record has changed since, so
// what bar has seen is still so when do begins.
func (r *Runner) Take(ctx context.Context, request string, do func(context.Context, *supervise.Handle) error, bar func(*store.Record) error) (store.Outcome, error) {
	job := *r.job
	job.Task.Do = do
	b := newRunner(r.replica, &job, r.client, &source{&origin{request}, r.source.state})
	defer r.replica.vitals.outage.leave(b.source, r.replica.Emit)
	c := &call{request: request, bounded: true, take: &taking{bar: bar}}
	outcome, err := b.runNow(ctx, c)
	if c.undone != nil && ctx.Err() == nil { // the record may name this call for as long as its lease lasts
		return outcome, newHeldError(&b.view.rec, b.now())
	}
	return outcome, err
}

// A taking is the part of a call that is for Take. Its methods may be called on nil.
type taking struct {
	bar    func(*store.Record) error
	behind bool // another replica was first with the lease
}

// barred returns why nothing may be done under this record.
func (t *taking) barred(rec *store.Record) error {
	if t == nil || t.bar == nil {
		return nil
	}
	return t.bar(rec)
}

// lost notes that another replica was first with the lease.
func (t *taking) lost() {
	if t != nil {
		t.behind = true
	}
}

// held returns the error for a lease that another holder has, who has not claimed yet.
func (t *taking) held(r *Runner) error {
	if t == nil {
		return nil
	}
	return newHeldError(&r.view.rec, r.now())
}

// outrun returns the error for a lease that another replica was first to acquire.
func (t *taking) outrun(r *Runner) error {
	if t == nil || !t.behind {
		return nil
	}
	return newHeldError(&r.view.rec, r.now())
}

// A HeldError says who has the lease. It is store.ErrHeld.
type HeldError struct {
	Replica  string        // that has claimed; empty: the holder has not claimed yet
	Token    int64         // of the last claim
	For      time.Duration // since that claim, by the service's clock as far as it is known
	Lease    time.Duration // of the holder; zero: not known
	Stopping bool          // it is about to be given up
}

func newHeldError(rec *store.Record, now time.Time) *HeldError {
	h := &HeldError{Token: rec.Token}
	if rec.MayRun() {
		h.Replica, h.For, h.Lease, h.Stopping = rec.Run.Replica, max(0, now.Sub(rec.Run.Claimed)), time.Duration(rec.Run.Lease), rec.Run.Stopping
	}
	return h
}

func (h *HeldError) Error() string {
	if h.Replica == "" {
		return store.ErrHeld.Error()
	}
	return fmt.Sprintf("%v: %s runs it", store.ErrHeld, h.Replica)
}

// Is reports whether target is store.ErrHeld.
func (h *HeldError) Is(target error) bool { return target == store.ErrHeld }
