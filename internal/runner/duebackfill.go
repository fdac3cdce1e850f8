package runner

import (
	"context"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// RunBackfilled runs ticks of a backfill while a call that began at begin has time for them, and returns
// what it did. A tick of the job that comes due meanwhile is run first; then it returns, and ticked is
// true, since jobs that follow this one may be due now. If Loop or another call is driving this
// runner, it does nothing.
func (r *Runner) RunBackfilled(ctx context.Context, begin time.Time) (report Report, ticked bool) {
	done, ok := r.turn.take(ctx, false)
	if !ok {
		return report, false
	}
	defer done()
	c := &call{bounded: true}
	if !r.goesOn(ctx, begin) {
		return report, false
	}
	r.view.readAt = time.Time{}
	more := true
	for more && !ticked && ctx.Err() == nil {
		c.again = false
		wait := r.step(ctx, c)
		ticked = slices.ContainsFunc(c.ran, func(f store.Outcome) bool { return f.Request == "" })
		if more = c.again || wait == 0 && r.goesOn(ctx, begin); more && !ticked {
			lease.Sleep(ctx, wait)
		}
	}
	return r.report(ctx, c, more), ticked
}

// goesOn reports whether a call has time for the next tick of a backfill. It is not known how long a run
// takes, unless the job has a Timeout, so half of the time of a call that ends is enough.
func (r *Runner) goesOn(ctx context.Context, begin time.Time) bool {
	end, ends := ctx.Deadline()
	if ends && r.job.Task.Timeout == 0 && time.Since(begin) > time.Until(end) {
		return false
	}
	return !r.job.EveryReplica && r.job.Policy.Backfills(r.decideBy(&call{}))
}
