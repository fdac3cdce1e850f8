package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// lossPause is the first pause of a call of Take that has lost a race for the lease, and does not know that another
// replica still has it.
const lossPause = 50 * time.Millisecond

// Take does something once under the lease of the job, as a manual run under a request that
// no caller has made before. It does not wait for another holder: the error is then a HeldError. A
// failure of the store that may pass is waited out until ctx ends, as RunNow does, unless terms say
// otherwise. ErrNotBegun: a claim of this call may be in the record, and do was not called; it was taken back if possible.
func (r *Runner) Take(ctx context.Context, request string, do func(context.Context, *supervise.Handle) error, terms Terms) (store.Outcome, error) {
	job, began := *r.job, false
	job.Task.Do = func(ctx context.Context, h *supervise.Handle) error {
		began = true
		return do(ctx, h)
	}
	b := newRunner(r.replica, &job, r.client, &source{origin: &origin{request}, state: r.source.state})
	b.losses = b.client.Backoff(lossPause)
	c := &call{request: request, bounded: true, take: &taking{Terms: terms}}
	if seen := r.source.state.sighting.Load(); seen != nil {
		b.view.seen.Recall(*seen)
	}
	outcome, err := b.runNow(ctx, c)
	if !began && c.undone != nil {
		takeBackUnbegun(ctx, b, c)
	}
	seen := b.view.seen.Sighting()
	r.source.state.sighting.Store(&seen)
	r.replica.vitals.outage.leave(b.source, Passing(err), r.replica.Emit)
	switch {
	case began:
	case err == nil:
		// No other caller has made the request. So this is what became of a claim that was written here
		// and not confirmed in time.
		err = fmt.Errorf("%w: it was %s: %s", ErrNotBegun, outcome.Status, outcome.Reason)
	case c.undone != nil && c.take.session != nil:
		err = fmt.Errorf("%w: %w", ErrNotBegun, err)
	}
	return outcome, err
}

// takeBackUnbegun takes back the last claim of a call that has begun nothing: nothing has failed, so it must not count as the
// death of a runner. It may be too late: another replica that has the lease cannot know that the work was not begun.
func takeBackUnbegun(ctx context.Context, r *Runner, c *call) {
	t := c.take
	if t.session == nil {
		return
	}
	h := &hold{Runner: r, ctx: ctx, call: c, session: t.session, before: *t.before}
	if h.takeBackBriefly() {
		h.release()
	}
}
