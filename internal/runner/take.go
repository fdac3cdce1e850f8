package runner

import (
	"context"

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
