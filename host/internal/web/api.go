package web

import (
	_ "embed"
	"github.com/soloist-go/soloist/host/internal/view"
	"net/http"
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
	var q query
	values, err := parameters(r)
	if err == nil {
		q, err = parseQuery(values)
	}
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
	if err := p.app.One(name); err != nil {
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

// jobFor returns false if the store has answered nothing about the job yet.
func (p *pages) jobFor(r *http.Request, n news, name string) (jobAnswer, bool) {
	rows, i := n.rows(p.app), n.index(name)
	if i < 0 {
		return jobAnswer{}, false
	}
	return jobAnswer{App: p.infoFor(r, n), Job: view.DetailOf(p.app, n.all[i], rows[i].Whole(), n.orders.Audit), Log: p.past.On() && !n.all[i].EveryReplica}, true
}

// orders answers with what operators have ordered last.
func (p *pages) orders(w http.ResponseWriter, r *http.Request) {
	n := p.cache.look(r.Context())
	Reply(w, http.StatusOK, ordersAnswer{App: p.infoFor(r, n), Orders: view.OrdersOf(n.orders.Audit, "")})
}
