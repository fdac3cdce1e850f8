package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// orderTime bounds the calls to the store for one change.
const orderTime = 10 * time.Second

// A change is what a request to change something says. All of it may be left out.
type change struct {
	By     string    `json:"by"`     // who wants it; empty: the user who has signed in
	Reason string    `json:"reason"` // it is kept with the order, and shown
	Until  time.Time `json:"until"`  // pause: when it ends by itself; run: when it is given up
	Now    bool      `json:"now"`    // unlock: at once, while the holder may still be working
	From   time.Time `json:"from"`   // backfill: the range, with both ends
	To     time.Time `json:"to"`     //
	All    bool      `json:"all"`    // backfill: all ticks of the range; otherwise those that were missed

	Parallel int `json:"parallel"` // backfill: how many of them are run at a time; 0 and 1: one

	DryRun bool `json:"dryRun"` // backfill: answer what it would run, and change nothing
}

// A changed is what a change has come to.
type changed struct {
	Job    string      `json:"job"`
	Status string      `json:"status"`          // ordered; planned; handed over; stopping; unlocked
	Order  *view.Order `json:"order,omitempty"` // as it was written
	Note   string      `json:"note,omitempty"`  // what else there is to know

	Plan *backfillPlan `json:"plan,omitempty"` // of a backfill that is asked about
}

// A backfillPlan is what a backfill would run.
type backfillPlan struct {
	Ticks int       `json:"ticks"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// lineRule is what people may write.
var lineRule = regexp.MustCompile(`^[^\x00-\x1f\x7f]{0,200}$`)

// readChange returns false if it has answered that the request is wrong.
func (p *pages) readChange(w http.ResponseWriter, r *http.Request) (job string, c change, ok bool) {
	if job, ok = p.named(w, r); !ok || !readBody(w, r, &c, true) {
		return job, c, false
	}
	c.By = cmp.Or(c.By, p.guard.nameOf(r))
	switch {
	case !lineRule.MatchString(c.By) || !lineRule.MatchString(c.Reason):
		fail(w, http.StatusBadRequest, "by and reason: want up to 200 characters on one line")
	case !c.Until.IsZero() && !c.Until.After(p.app.Now()):
		fail(w, http.StatusBadRequest, "until is "+format.Stamp(c.Until)+": want a time in the future")
	case c.DryRun && !strings.HasSuffix(r.URL.Path, "/backfill"):
		fail(w, http.StatusBadRequest, "dryRun is for a backfill alone")
	default:
		return job, c, true
	}
	return job, c, false
}

// backfill writes an order, or answers what that would run.
func (p *pages) backfill(w http.ResponseWriter, r *http.Request) {
	job, c, ok := p.readChange(w, r)
	switch {
	case !ok:
		return
	case !c.DryRun:
		if written, ok := p.write(w, r, record.OrderBackfill, job, c); ok {
			Reply(w, http.StatusOK, changed{Job: job, Status: "ordered", Order: view.OrderOf(written)})
		}
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), orderTime)
	defer cancel()
	plan, err := p.app.Scheduler.PlanBackfill(ctx, job, soloist.Backfill{From: c.From, To: c.To, All: c.All, Parallel: c.Parallel})
	if err != nil {
		failChange(w, job, err)
		return
	}
	would := &backfillPlan{plan.Ticks, format.UTC(plan.First), format.UTC(plan.Last)}
	Reply(w, http.StatusOK, changed{Job: job, Status: "planned", Plan: would})
}

// order writes an order, which replicas read within a few seconds.
func (p *pages) order(kind record.OrderKind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		job, c, ok := p.readChange(w, r)
		if !ok {
			return
		}
		before := p.cache.now().orders.Jobs[job]
		if written, ok := p.write(w, r, kind, job, c); ok {
			out := changed{Job: job, Status: "ordered", Order: view.OrderOf(written)}
			if kind == record.OrderPause {
				out.Note = view.PauseReplaced(before, p.app.Now())
			}
			if kind == record.OrderResume && p.app.Paused(job) {
				out.Note = fmt.Sprintf("the settings of this replica pause %s too: it stays paused until they are changed", job)
			}
			Reply(w, http.StatusOK, out)
		}
	}
}

// write writes an order, or answers why it cannot be written.
func (p *pages) write(w http.ResponseWriter, r *http.Request, kind record.OrderKind, job string, c change) (record.Order, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), orderTime)
	defer cancel()
	written, err := p.app.Order(ctx, desk.Order{Kind: kind, Job: job, By: c.By, Reason: c.Reason, Until: c.Until,
		Backfill: desk.Range{From: c.From, To: c.To, All: c.All, Parallel: c.Parallel}})
	if errors.Is(err, app.ErrUnrung) {
		p.app.Log.Warn("order over HTTP", "error", err)
		err = nil
	}
	who := caller(r, "order", kind, "job", job, "by", format.Brief(c.By))
	if err != nil {
		p.app.Log.Warn("order over HTTP refused", append(who, "error", err)...)
		failChange(w, job, err)
		return written, false
	}
	p.app.Log.Info("order over HTTP", who...)
	p.cache.poke()
	return written, true
}

// failChange answers why a change is not made. What is left is trouble with the store.
func failChange(w http.ResponseWriter, job string, err error) {
	switch {
	case errors.Is(err, soloist.ErrNotRunning), errors.Is(err, soloist.ErrLost), errors.Is(err, soloist.ErrRefused):
		fail(w, http.StatusConflict, err.Error())
	case errors.Is(err, fs.ErrNotExist):
		fail(w, http.StatusNotFound, "there is no record of "+job+" yet: no replica has ever started it")
	default:
		fail(w, http.StatusServiceUnavailable, err.Error())
	}
}

// stepDown has a run handed over. If it is on this replica, the answer comes when it is.
func (p *pages) stepDown(w http.ResponseWriter, r *http.Request) {
	job, c, ok := p.readChange(w, r)
	if !ok {
		return
	}
	here := p.runs(job)
	out := changed{Job: job, Status: "ordered"}
	if _, orders := p.app.Store.(store.Documenter); orders || !here { // without orders, what runs here can be handed over
		written, ok := p.write(w, r, record.OrderStepDown, job, c)
		if !ok {
			return
		}
		out.Order = view.OrderOf(written)
	}
	if !here {
		Reply(w, http.StatusAccepted, out)
		return
	}
	p.handOver(w, r, out)
}

// handOver answers when a run here has ended. The order names the run: a run that has begun since
// goes on. A store that keeps no orders has none, and the run is stopped whether or not the caller
// waits for the answer.
func (p *pages) handOver(w http.ResponseWriter, r *http.Request, out changed) {
	if out.Order != nil && !p.runs(out.Job) {
		out.Note = "its run is over"
		Reply(w, http.StatusAccepted, out)
		return
	}
	// A run may take its grace to end, and then some writes. The answer may take that long.
	patience := p.app.Settings.Grace + 2*p.app.LeaseOf(out.Job)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 5*time.Second))
	parent, end := r.Context(), p.ended
	if out.Order == nil {
		p.app.Log.Info("step-down asked for over HTTP", caller(r, "job", out.Job)...)
		parent, end = context.WithoutCancel(parent), p.app.Scheduler.StepDown
	}
	ctx, cancel := context.WithTimeout(parent, patience)
	defer cancel()
	switch err := end(ctx, out.Job); {
	case err == nil:
		p.app.Log.Info("stepped down, as asked over HTTP", caller(r, "job", out.Job)...)
		out.Status = "handed over"
		Reply(w, http.StatusOK, out)
	case errors.Is(err, context.DeadlineExceeded):
		out.Status, out.Note = "stopping", fmt.Sprintf("its run has not returned after %s", patience)
		Reply(w, http.StatusAccepted, out)
	case r.Context().Err() == nil: // else the caller has gone; the order stands
		fail(w, http.StatusConflict, err.Error())
	}
}

// endPace is how often a request looks whether the run that it waits for has ended.
const endPace = 50 * time.Millisecond

// ended waits until a job does not run here.
func (p *pages) ended(ctx context.Context, job string) error {
	for look := time.Tick(endPace); p.runs(job); {
		select {
		case <-look:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// runs reports whether a job runs here.
func (p *pages) runs(job string) bool {
	return slices.Contains(p.app.Scheduler.Health().Running, job)
}

// unlock ends the lease of a holder that hangs.
func (p *pages) unlock(w http.ResponseWriter, r *http.Request) {
	job, c, ok := p.readChange(w, r)
	if !ok {
		return
	}
	if p.app.EveryReplica(job) {
		fail(w, http.StatusConflict, app.WithoutLease(job))
		return
	}
	p.app.Log.Warn("unlock asked for over HTTP", caller(r, "job", job, "now", c.Now, "by", format.Brief(c.By))...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), orderTime)
	defer cancel()
	out := changed{Job: job, Status: "unlocked"}
	switch err := p.app.Scheduler.Unlock(ctx, job, c.Now); {
	case errors.Is(err, soloist.ErrUntold):
		out.Note = format.Error(err)
	case errors.Is(err, soloist.ErrLost):
		fail(w, http.StatusConflict, job+" has no lease: no replica holds it")
		return
	case err != nil:
		failChange(w, job, err)
		return
	}
	p.cache.poke()
	Reply(w, http.StatusOK, out)
}
