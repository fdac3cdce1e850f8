package soloist

import (
	"context"
	"fmt"
	"time"
)

// takeBack gives up what was claimed and not started, so that another replica
// runs it at once. It returns false, and the lease has to be left to expire, if
// the record may still say that it runs.
func (w *worker) takeBack(ctx context.Context, h *hold, before *Record, run *Run) bool {
	err := w.confirm(ctx, h, func(r *Record) { *r = w.planner.takeBack(before, r) })
	if err != nil {
		run.own.Error("stopped before the run began, and the claim was not taken back: the tick counts as one whose runner died", "error", err)
		w.undone = fmt.Errorf("its tick %s was claimed and not run: %w", run.Tick.Format(time.RFC3339), err)
		return false
	}
	w.rec, w.etag = h.rec, h.etag
	run.own.Info("stopped before the run began: the claim was taken back")
	w.undone = fmt.Errorf("its tick %s was given back before it ran: %w", run.Tick.Format(time.RFC3339), ErrStopped)
	return true
}

// takeBack returns the record after a claim that was given up before its run
// began. It tells of the run before that claim again. What the claim settled for
// other ticks stays settled, and its token stays spent.
func (p *planner) takeBack(before, claim *Record) Record {
	r := claim.clone()
	r.Tick, r.Request, r.Attempt, r.Deaths = before.Tick, before.Request, before.Attempt, before.deaths()
	r.Status, r.Error, r.Progress = before.Status, before.Error, before.Progress
	r.Holder, r.Lease = before.Holder, before.Lease
	r.Claimed, r.Finished, r.Stopping = before.Claimed, before.Finished, false
	switch { // a run that was under way has ended: its lease could be acquired
	case before.Status == Running:
		r.Status = Abandoned
	case before.mayRun():
		r.Finished = claim.Claimed
	}
	r.Due = p.dueOf(&r)
	return r
}
