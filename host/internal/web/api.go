package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
)

// jobs answers with what status --json tells.
func (p *pages) jobs(w http.ResponseWriter, r *http.Request) {
	n := p.cache.look(r.Context())
	body := view.Status(p.app, view.All(p.app, n.all), p.functions)
	body.Note = n.old()
	Reply(w, http.StatusOK, body)
}

// A steppedDown is what stepDown answers.
type steppedDown struct {
	Job    string `json:"job"`
	Status string `json:"status,omitempty"` // handed over; stopping
	Error  string `json:"error,omitempty"`
}

// stepDown hands over what runs here of a job or singleton.
func (p *pages) stepDown(w http.ResponseWriter, r *http.Request) {
	job := r.PathValue("job")
	if err := app.Known(job, p.app.Names()); err != nil {
		Reply(w, http.StatusNotFound, steppedDown{Job: job, Error: err.Error()})
		return
	}
	if p.app.EveryReplica(job) {
		Reply(w, http.StatusConflict, steppedDown{Job: job, Error: app.WithoutLease(job)})
		return
	}
	p.app.Log.Info("step-down asked for over HTTP", append([]any{"job", job}, caller(r)...)...)
	// The run has its grace, and then some writes follow. It is stopped whether or
	// not anybody waits for the answer.
	patience := p.app.Settings.Grace + 2*p.app.LeaseOf(job)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 5*time.Second))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	switch err := p.app.Scheduler.StepDown(ctx, job); {
	case err == nil:
		p.app.Log.Info("stepped down, as asked over HTTP", append([]any{"job", job}, caller(r)...)...)
		Reply(w, http.StatusOK, steppedDown{Job: job, Status: "handed over"})
	case errors.Is(err, context.DeadlineExceeded):
		Reply(w, http.StatusAccepted, steppedDown{Job: job, Status: "stopping", Error: fmt.Sprintf("its run has not returned after %s", patience)})
	default:
		Reply(w, http.StatusConflict, steppedDown{Job: job, Error: format.Line(err.Error())})
	}
}
