package runner

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// breakSilent ends the lease of a holder that has sent no beat for so long that it trusts the
// lease no more. It returns false if the holder has, meanwhile. If the answer is lost it sends
// the call once more. Then the acquisition shows whether the lease has ended: like the call it
// names the ETag, and so does the claim after it. One of the three conditions is enough.
func (r *Runner) breakSilent(ctx context.Context, etag string) bool {
	err := r.breakOnce(ctx, etag, r.client.Haste(&r.view.rec))
	if err != nil && !lease.Definite(err) {
		err = r.breakOnce(ctx, etag, r.client.CallTimeout())
	}
	if errors.Is(err, store.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
		r.detail("the holder that seemed dead has written", err)
		return false
	}
	return true
}

func (r *Runner) breakOnce(ctx context.Context, etag string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.client.Store.(store.ConditionalBreaker).BreakUnchanged(ctx, r.client.Name, etag)
}

// lookAnew has this replica see the last beat of a run for its whole length once more, before it
// breaks another lease: an acquisition does not change the ETag, so two replicas could break
// each other's leases forever.
func (r *Runner) lookAnew() {
	if r.view.rec.Beats() > 0 {
		r.view.seen.LookedAway()
	}
}
