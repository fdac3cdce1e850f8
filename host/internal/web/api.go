// Package web answers people, probes and programs over HTTP, and decides which
// requests are answered.
package web

import (
	"bytes"
	_ "embed"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/why"
	"github.com/soloist-go/soloist/internal/record"
)

// pages answer what people, probes and programs ask over HTTP.
type pages struct {
	app       *app.App
	guard     *Guard
	cache     *Cache
	past      *past.Cache
	witness   *why.Witness
	lanes     *past.Strip
	marks     *stripMarks
	shelf     *lockShelf
	functions []string     // in Functions: what is deployed and is not what the jobs need
	streams   atomic.Int64 // that are open
}

// A route is one method of one path.
type route struct {
	method, path string
	handler      http.Handler
}

// Routes are all paths. Those for probes are open: a platform has no token. The page is
// open, too: it has nothing in it but the form to sign in, and asks the API for the rest.
// functions is what is deployed in Functions and is not what the jobs need.
func Routes(a *app.App, guard *Guard, cache *Cache, functions []string) *http.ServeMux {
	logs := past.NewCache(a)
	p := &pages{app: a, guard: guard, cache: cache, past: logs, lanes: logs.Strip(cache.readings.Go, cache.closed), marks: newStripMarks(time.Now()),
		witness: why.Watch(a), shelf: newLockShelf(a.Scheduler.Store, a.Settings.App, cache.readings.Go, cache.closed), functions: functions}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page)
	for _, part := range []string{"jobs", "shards", "runs"} {
		mux.HandleFunc("GET /"+part+"/{name}", page)
	}
	mux.Handle("GET /metrics", guard.Read(p.metrics))
	mux.HandleFunc("GET /healthz", p.healthz)
	mux.HandleFunc("GET /readyz", p.readyz)
	for _, r := range p.api() {
		mux.Handle(r.method+" "+apiRoot+r.path, r.handler)
	}
	return mux
}

// apiRoot is the path of the API. Its number grows with a change that a client would
// have to know of.
const apiRoot = "/api/v1"

// api are the routes under apiRoot, which openapi.json describes.
func (p *pages) api() []route {
	read, admin := p.guard.Read, p.guard.Admin
	return []route{
		{"GET", "/openapi.json", read(p.openAPI)},
		{"GET", "/app", read(p.info)},
		{"GET", "/jobs", read(p.jobs)},
		{"GET", "/jobs/{job}", read(p.job)},
		{"GET", "/jobs/{job}/history", read(p.history)},
		{"GET", "/jobs/{job}/why", read(p.why)},
		{"GET", "/replicas", read(p.replicas)},
		{"GET", "/locks", read(p.locks)},
		{"GET", "/strip", read(p.strip)},
		{"GET", "/stream", read(p.stream)},
		{"POST", "/session", ownSite(p.signIn)},
		{"DELETE", "/session", ownSite(p.signOut)},
		{"GET", "/orders", read(p.orders)},
		{"POST", "/jobs/{job}/run", admin(p.order(record.OrderRun))},
		{"POST", "/jobs/{job}/pause", admin(p.order(record.OrderPause))},
		{"POST", "/jobs/{job}/resume", admin(p.order(record.OrderResume))},
		{"POST", "/jobs/{job}/cancel", admin(p.order(record.OrderCancel))},
		{"POST", "/jobs/{job}/backfill", admin(p.backfill)},
		{"POST", "/jobs/{job}/cancel-backfill", admin(p.order(record.OrderCancelBackfill))},
		{"POST", "/jobs/{job}/step-down", admin(p.stepDown)},
		{"POST", "/jobs/{job}/unlock", admin(p.unlock)},
	}
}

// An appInfo is what each answer says about the program and the replica that answers.
type appInfo struct {
	Name     string    `json:"name"`
	Replica  string    `json:"replica"`
	Store    string    `json:"store"`
	Version  string    `json:"version,omitempty"`  // of the program
	Revision string    `json:"revision,omitempty"` // of the deployment, as the platform names it
	Time     time.Time `json:"time"`               // now
	ReadAt   time.Time `json:"readAt,omitzero"`    // when the records were read; zero: not yet

	Jobs    int `json:"jobs"`    // how many jobs and singletons there are, each shard counted
	Trouble int `json:"trouble"` // how many of them an operator should look at

	Looks map[view.Look]int `json:"looks"` // how many of them are failing, running, late, paused, due within the hour

	Note      string            `json:"note,omitempty"`      // how old the answer is, if that is worth a word
	Storage   string            `json:"storage,omitempty"`   // why the store is out of reach
	Orders    string            `json:"orders,omitempty"`    // why the orders of operators cannot be read
	Log       string            `json:"log,omitempty"`       // why lines of the log wait
	Skew      float64           `json:"skew"`                // seconds that this machine's clock is ahead of the store's, as far as that is proved
	Clock     string            `json:"clock,omitempty"`     // the skew in words, if it is worth a word
	Stuck     []string          `json:"stuck,omitempty"`     // what only a restart of the replica helps
	Overrun   map[string]string `json:"overrun,omitempty"`   // runs that go on though their context has ended, and why it did
	Functions []string          `json:"functions,omitempty"` // in Functions: what is deployed and is not what the jobs need

	Replicas     []view.Replica `json:"replicas"`               // the first ones; of those that are up, it is left out when they wrote that
	MoreReplicas int            `json:"moreReplicas,omitempty"` // how many are left out
	Differs      []string       `json:"differs,omitempty"`      // what is not the same on all replicas, besides the settings of jobs

	Changes  access `json:"changes"`            // whether this caller may change something
	HowTo    string `json:"howTo,omitempty"`    // how they get to, if they may not
	SignedIn bool   `json:"signedIn,omitempty"` // the caller is a browser that has signed in
}

// A jobsAnswer is one page of the list of jobs.
type jobsAnswer struct {
	App     appInfo    `json:"app"`
	Matched int        `json:"matched"` // how many jobs match the query
	Offset  int        `json:"offset"`  // how many of them come before these
	Jobs    []view.Job `json:"jobs"`
}

// A jobAnswer is one job.
type jobAnswer struct {
	App appInfo     `json:"app"`
	Job view.Detail `json:"job"`
	Log bool        `json:"log,omitempty"` // the history reaches back further than the record
}

// An ordersAnswer is what operators have ordered last.
type ordersAnswer struct {
	App    appInfo      `json:"app"`
	Orders []view.Order `json:"orders"` // newest first
}

// A replicasAnswer is all replicas.
type replicasAnswer struct {
	App      appInfo        `json:"app"`
	Replicas []view.Replica `json:"replicas"` // those that are up first
}

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
	if q, ok := asked(w, r, parseQuery); ok {
		Reply(w, http.StatusOK, p.jobsFor(r, p.cache.look(r.Context()), q))
	}
}

func (p *pages) jobsFor(r *http.Request, n news, q query) jobsAnswer {
	rows, _ := n.shown(p.app)
	page, matched := q.page(rows, p.app.Now())
	for i := range page {
		page[i].Skip(p.app)
	}
	return jobsAnswer{App: p.infoFor(r, n), Matched: matched, Offset: q.offset, Jobs: page}
}

// named returns the job of a request, false if it has answered that there is none.
func (p *pages) named(w http.ResponseWriter, r *http.Request) (name string, ok bool) {
	name = r.PathValue("job")
	err := p.app.One(name)
	if err != nil {
		fail(w, http.StatusNotFound, err.Error())
	}
	return name, err == nil
}

// job answers with all that is known of one job.
func (p *pages) job(w http.ResponseWriter, r *http.Request) {
	name, ok := p.named(w, r)
	if !ok {
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
	i := n.index(name)
	if i < 0 {
		return jobAnswer{}, false
	}
	rows, _ := n.shown(p.app)
	return jobAnswer{App: p.infoFor(r, n), Job: view.DetailOf(p.app, n.all[i], rows[i].Whole(), n.orders.Audit), Log: p.past.On() && !n.all[i].EveryReplica}, true
}

// orders answers with what operators have ordered last.
func (p *pages) orders(w http.ResponseWriter, r *http.Request) {
	n := p.cache.look(r.Context())
	Reply(w, http.StatusOK, ordersAnswer{App: p.infoFor(r, n), Orders: view.OrdersOf(n.orders.Audit, "")})
}

// infoFor is what an answer to this request says about the program.
func (p *pages) infoFor(r *http.Request, n news) appInfo {
	h := p.app.Scheduler.Health()
	out := appInfo{Name: p.app.Settings.App, Replica: p.app.Scheduler.Replica, Store: p.app.Place, Version: app.Version(), Revision: app.RevisionName(),
		Time: format.UTC(p.app.Now()), Jobs: len(p.app.Names()),
		Note: n.old(), Orders: format.Error(n.deaf), Storage: format.Error(h.Storage), Log: format.Error(p.app.LogBlocked(h)),
		Skew: format.SkewSeconds(h.Skew), Clock: format.SkewNote(h.Skew),
		Stuck: h.Stuck, Overrun: each(h.Overrun, format.Error), Functions: p.functions,
		Changes: p.guard.changes(r), HowTo: p.guard.howTo(r), SignedIn: p.guard.signedIn(r)}
	if !n.at.IsZero() { // by the clock of Time, whose steps do not touch the age
		out.ReadAt = format.UTC(p.app.Now().Add(-time.Since(n.at)))
	}
	rows, fleet := n.shown(p.app)
	shown := min(len(fleet.Replicas), fleetMost)
	out.Replicas, out.MoreReplicas = brief(append([]view.Replica{}, fleet.Replicas[:shown]...)), len(fleet.Replicas)-shown
	if out.Differs = fleet.Differs; n.fleet.wrong != nil {
		out.Differs = view.UnreadFleet(p.app, n.fleet.wrong).Differs
	}
	out.Looks = map[view.Look]int{}
	for _, l := range view.Looks {
		out.Looks[l] = 0
	}
	for i := range rows {
		if rows[i].Trouble {
			out.Trouble++
		}
		for _, l := range view.Looks {
			if rows[i].Is(l, p.app.Now()) {
				out.Looks[l]++
			}
		}
	}
	return out
}

// fleetMost is how many replicas are in an answer about jobs.
const fleetMost = 20

// replicas answers with the replicas.
func (p *pages) replicas(w http.ResponseWriter, r *http.Request) {
	n := p.cache.look(r.Context())
	_, fleet := n.shown(p.app)
	Reply(w, http.StatusOK, replicasAnswer{App: p.infoFor(r, n), Replicas: append([]view.Replica{}, fleet.Replicas...)})
}

// metrics answers with what Prometheus reads.
func (p *pages) metrics(w http.ResponseWriter, r *http.Request) { p.app.Telemetry.ServeHTTP(w, r) }

// Reply writes the header after the body is known to be JSON: a client that gets
// an empty body with status 200 has no way to know that something is wrong.
func Reply(w http.ResponseWriter, code int, body any) {
	text, err := encode(body)
	if err != nil {
		http.Error(w, "the answer cannot be written as JSON: "+format.Error(err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(text)
}

func encode(answer any) ([]byte, error) {
	var b bytes.Buffer
	err := format.WriteJSON(&b, answer, "")
	return b.Bytes(), err
}

// A problem is the answer to a request that is refused or fails.
type problem struct {
	Error string `json:"error"` // what is wrong, and what to do
}

// fail answers with what is wrong.
func fail(w http.ResponseWriter, code int, text string) { Reply(w, code, problem{format.Line(text)}) }
