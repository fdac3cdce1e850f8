package web

import (
	"net/http"

	"github.com/soloist-go/soloist/host/internal/app"
)

// Routes are all paths. The two for probes are open: a platform has no token.
// functions is what is deployed in Functions and is not what the jobs need.
func Routes(a *app.App, guard *Guard, cache *Cache, functions []string) *http.ServeMux {
	p := &pages{app: a, guard: guard, cache: cache, functions: functions}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", guard.Read(p.page))
	mux.Handle("GET /api/jobs", guard.Read(p.jobs))
	mux.Handle("GET /metrics", guard.Read(p.metrics))
	mux.HandleFunc("GET /healthz", p.healthz)
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("POST /api/jobs/{job}/stepdown", guard.Admin(p.stepDown))
	return mux
}
