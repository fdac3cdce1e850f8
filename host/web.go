package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
)

// routes are all paths. The two for probes are open: a platform has no token.
func (a *app) routes(b *board) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", a.guard(a.page(b)))
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz(b))
	if inFunctions() { // only the host on this machine can reach it there
		mux.HandleFunc("POST /"+tickFunction, a.tick)
	}
	return plainHeaders(mux)
}

func plainHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// guard asks for the token if there is one.
func (a *app) guard(h http.Handler) http.Handler {
	if a.ReadToken == "" {
		return h
	}
	want := sha256.Sum256([]byte(a.ReadToken)) // of equal length, whatever is offered
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "want the header Authorization: Bearer, with the token of SOLOIST_READ_TOKEN", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// health is the answer to a probe.
type health struct {
	Status  string            `json:"status"` // ok, degraded, stuck; ready, waiting
	Running []string          `json:"running,omitempty"`
	Stuck   []string          `json:"stuck,omitempty"`
	Broken  map[string]string `json:"broken,omitempty"`
	Storage string            `json:"storage,omitempty"` // why it is out of reach
}

// healthz answers whether a restart would help. It would not against a broken
// record or an outage of the storage: all replicas would restart in a loop.
func (a *app) healthz(w http.ResponseWriter, _ *http.Request) {
	now := a.sched.Health()
	h := health{Status: "ok", Running: now.Running, Stuck: now.Stuck, Broken: map[string]string{}}
	for job, err := range now.Broken {
		h.Broken[job] = line(err.Error())
	}
	if now.Storage != nil {
		h.Storage = line(now.Storage.Error())
	}
	code := http.StatusOK
	switch {
	case len(h.Stuck) > 0:
		h.Status, code = "stuck", http.StatusServiceUnavailable
	case len(h.Broken) > 0 || h.Storage != "":
		h.Status = "degraded"
	}
	reply(w, code, h)
}

// readyz answers whether the replica can do its work.
func (a *app) readyz(b *board) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := a.sched.Health()
		switch {
		case now.Storage != nil:
			reply(w, http.StatusServiceUnavailable, health{Status: "waiting", Storage: line(now.Storage.Error())})
		case !now.Reached && !b.ready(r.Context()):
			reply(w, http.StatusServiceUnavailable, health{Status: "waiting", Storage: "it has not answered yet"})
		default:
			reply(w, http.StatusOK, health{Status: "ready"})
		}
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body)
}
