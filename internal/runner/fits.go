package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// hasTime reports whether this call has time for what is due. If it has too little for
// a run, it still settles the ticks that need no run; v then says so.
func (r *Runner) hasTime(ctx context.Context, c *call, v *plan.View) bool {
	err := r.fits(ctx, c)
	if err == nil {
		return true
	}
	if next, _ := r.job.Policy.Claim(*v); next.Run && store.BackfillOf(next.Record.Run.Request) == 0 {
		c.short = err
	}
	v.Claims = plan.NoRun
	_, todo := r.job.Policy.Claim(*v)
	return todo
}

// stillFits is hasTime after a hold-off, which may have taken most of what was left of
// the call.
func (h *hold) stillFits(v *plan.View) bool {
	if h.call.request != "" {
		return h.fits(h.ctx, h.call) == nil
	}
	v.Now = h.now()
	return h.hasTime(h.ctx, h.call, v)
}

// fits returns why this call of RunDue or RunNow must not start a run: the job's
// Timeout is longer than what the call has left, so the platform could end the process
// in the middle of the run. Loop has no such limit.
func (r *Runner) fits(ctx context.Context, c *call) error {
	deadline, limited := ctx.Deadline()
	timeout := r.job.Task.Timeout
	if !c.bounded || !limited || timeout == 0 {
		return nil
	}
	if left := time.Until(deadline); left < timeout {
		return fmt.Errorf("not started: it may take %s, and this call ends in %s", timeout, left.Round(time.Second))
	}
	return nil
}
