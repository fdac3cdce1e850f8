package web

import (
	"net/http"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/store"
)

// A route is one method of one path.
type route struct {
	method, path string
	handler      http.Handler
}

// Routes are all paths. Those for probes are open: a platform has no token. The page is
// open, too: it has nothing in it but the form to sign in, and asks the API for the rest.
// functions is what is deployed in Functions and is not what the jobs need.
func Routes(a *app.App, guard *Guard, cache *Cache, functions []string) *http.ServeMux {
	p := &pages{app: a, guard: guard, cache: cache, past: past.NewCache(a), shelf: newLockShelf(a.Scheduler.Store, a.Settings.App, cache.readings.Go, cache.watching.closed), functions: functions}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page)
	mux.HandleFunc("GET /jobs/{job}", page)
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
		{"GET", "/replicas", read(p.replicas)},
		{"GET", "/locks", read(p.locks)},
		{"GET", "/stream", read(p.stream)},
		{"POST", "/session", ownSite(p.signIn)},
		{"DELETE", "/session", ownSite(p.signOut)},
		{"GET", "/orders", read(p.orders)},
		{"POST", "/jobs/{job}/run", admin(p.order(store.OrderRun))},
		{"POST", "/jobs/{job}/pause", admin(p.order(store.OrderPause))},
		{"POST", "/jobs/{job}/resume", admin(p.order(store.OrderResume))},
		{"POST", "/jobs/{job}/cancel", admin(p.order(store.OrderCancel))},
		{"POST", "/jobs/{job}/backfill", admin(p.order(store.OrderBackfill))},
		{"POST", "/jobs/{job}/cancel-backfill", admin(p.order(store.OrderCancelBackfill))},
		{"POST", "/jobs/{job}/step-down", admin(p.stepDown)},
		{"POST", "/jobs/{job}/unlock", admin(p.unlock)},
	}
}
