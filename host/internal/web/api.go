package web

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/view"
)

//go:embed openapi.json
var openAPIText []byte

// openAPI answers with the description of the API.
func (p *pages) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(openAPIText)
}

// info answers with what is known of the program and of this replica.
func (p *pages) info(w http.ResponseWriter, r *http.Request) {
	Reply(w, http.StatusOK, p.infoFor(r, p.cache.look(r.Context())))
}

// jobs answers with one page of the list of jobs.
func (p *pages) jobs(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	Reply(w, http.StatusOK, p.jobsFor(r, p.cache.look(r.Context()), q))
}

func (p *pages) jobsFor(r *http.Request, n news, q query) jobsAnswer {
	page, matched := q.page(n.rows(p.app))
	return jobsAnswer{App: p.infoFor(r, n), Matched: matched, Offset: q.offset, Jobs: page}
}

// job answers with all that is known of one job.
func (p *pages) job(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("job")
	if err := app.Known(name, p.app.Names()); err != nil {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	answer, ok := p.jobFor(r, p.cache.look(r.Context()), name)
	if !ok {
		fail(w, http.StatusServiceUnavailable, notYet)
		return
	}
	Reply(w, http.StatusOK, answer)
}

// jobFor returns false if the store has told nothing of the job yet.
func (p *pages) jobFor(r *http.Request, n news, name string) (jobAnswer, bool) {
	rows := n.rows(p.app)
	i := slices.IndexFunc(n.all, func(st soloist.JobStatus) bool { return st.Name == name })
	if i < 0 {
		return jobAnswer{}, false
	}
	return jobAnswer{App: p.infoFor(r, n), Job: view.DetailOf(p.app, n.all[i], rows[i])}, true
}

// A steppedDown is what stepDown answers.
type steppedDown struct {
	Job    string `json:"job"`
	Status string `json:"status"`          // handed over; stopping
	Error  string `json:"error,omitempty"` // of stopping: why it is not handed over yet
}

// stepDown hands over what runs here of a job or singleton.
func (p *pages) stepDown(w http.ResponseWriter, r *http.Request) {
	job := r.PathValue("job")
	if err := app.Known(job, p.app.Names()); err != nil {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	if p.app.EveryReplica(job) {
		fail(w, http.StatusConflict, app.WithoutLease(job))
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
		fail(w, http.StatusConflict, err.Error())
	}
}
