package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// An unanswered is a session whose acquisition or write got no answer, and neither did the
// call after it that would have shown or ended the lease. Nothing runs under it, but its
// lease may last and keep the job from replicas that are answered.
type unanswered struct {
	session *lease.Session // nil: there is none
	err     error          // of the acquisition or the claim
	idle    bool           // it writes no claim
}

// errAcquisition wraps why the outcome of an acquisition is not known.
var errAcquisition = errors.New("the acquisition was not confirmed")

// freeUnanswered follows a read. If the entry still has the ETag that the session acquired,
// and a lease, the claim was not applied: the lease is released, as it would have been if
// the store had answered in time. The release names the id of the session, so it ends no
// other lease, and the store refuses a claim that is still under way from then on. It
// returns why this replica should yield: nil if the lease was not the session's.
//
// With another ETag the claim may have been applied. Its lease then has to expire. If the
// record is the claim itself, c learns that it names a run which will not be started.
func (r *Runner) freeUnanswered(ctx context.Context, c *call) error {
	u := r.denial.left
	r.denial.left = unanswered{}
	if u.session == nil {
		return nil
	}
	if run := &r.view.rec.Run; !u.idle && run.Status == store.Running && u.session.Wrote(r.view.entry.Record) {
		c.undone = fmt.Errorf("its tick %s was claimed and not run: %w", run.Tick.Format(time.RFC3339), u.err)
	}
	if !u.idle && r.view.entry.ETag != u.session.ETag() || !r.view.entry.State.Live() {
		return nil
	}
	err := u.session.Release(ctx)
	switch {
	case lease.Definite(err):
		return nil
	case err != nil:
		r.notReleased(err)
	default:
		r.view.entry.State = store.Available
		r.looked()
	}
	return u.err
}
