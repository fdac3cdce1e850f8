package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// jobs answers with what status --json tells.
func (a *app) jobs(b *board) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := b.look(r.Context())
		body := a.statusAnswer(a.views(n.all))
		body.Note = n.old()
		reply(w, http.StatusOK, body)
	}
}

// A steppedDown is what stepDown answers.
type steppedDown struct {
	Job    string `json:"job"`
	Status string `json:"status,omitempty"` // handed over; stopping
	Error  string `json:"error,omitempty"`
}

// stepDown hands over what runs here of a job or singleton.
func (a *app) stepDown(w http.ResponseWriter, r *http.Request) {
	job := r.PathValue("job")
	if err := known(job, a.all()); err != nil {
		reply(w, http.StatusNotFound, steppedDown{Job: job, Error: err.Error()})
		return
	}
	if a.everywhere(job) {
		reply(w, http.StatusConflict, steppedDown{Job: job, Error: onEach(job)})
		return
	}
	a.log.Info("step-down asked for over HTTP", append([]any{"job", job}, caller(r)...)...)
	// The run has its grace, and then some writes follow. It is stopped whether or
	// not anybody waits for the answer.
	patience := a.Grace + 2*a.leaseOf(job)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 5*time.Second))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	switch err := a.sched.StepDown(ctx, job); {
	case err == nil:
		a.log.Info("stepped down, as asked over HTTP", append([]any{"job", job}, caller(r)...)...)
		reply(w, http.StatusOK, steppedDown{Job: job, Status: "handed over"})
	case errors.Is(err, context.DeadlineExceeded):
		reply(w, http.StatusAccepted, steppedDown{Job: job, Status: "stopping", Error: fmt.Sprintf("its run has not returned after %s", patience)})
	default:
		reply(w, http.StatusConflict, steppedDown{Job: job, Error: line(err.Error())})
	}
}
