package host

import (
	"bytes"
	"net/http"
)

// routes are all paths. The two for probes are open: a platform has no token.
func (a *app) routes(b *board) http.Handler {
	mux := http.NewServeMux()
	read := func(h http.HandlerFunc) http.Handler {
		if a.ReadToken == "" {
			return h
		}
		return a.reader().around(h)
	}
	mux.Handle("GET /{$}", read(a.page(b)))
	mux.Handle("GET /api/jobs", read(a.jobs(b)))
	mux.Handle("GET /metrics", read(a.metrics(b)))
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz(b))
	mux.Handle("POST /api/jobs/{job}/stepdown", a.admin(a.stepDown))
	if inFunctions() {
		return plainHeaders(a.aroundLocal(a.functionRoutes(mux)))
	}
	return plainHeaders(a.aroundLocal(mux))
}

func plainHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// reader guards what only reads.
func (a *app) reader() tokenGuard { return tokenGuard{"SOLOIST_READ_TOKEN", a.ReadToken, a.refused} }

// admin is around all that changes state. A browser that has the token sends it
// along on behalf of any site, so other sites are refused.
func (a *app) admin(h http.HandlerFunc) http.Handler {
	if a.AdminToken == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "SOLOIST_ADMIN_TOKEN is not set: nothing over HTTP changes state", http.StatusForbidden)
		})
	}
	return http.NewCrossOriginProtection().Handler(tokenGuard{"SOLOIST_ADMIN_TOKEN", a.AdminToken, a.refused}.around(h))
}

// reply writes the header after the body is known to be JSON: a client that gets
// an empty body with status 200 has no way to know that something is wrong.
func reply(w http.ResponseWriter, code int, body any) {
	var text bytes.Buffer
	if err := writeJSON(&text, body, ""); err != nil {
		http.Error(w, "the answer cannot be written as JSON: "+line(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(text.Bytes())
}
