package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// routes are all paths. The two for probes are open: a platform has no token.
func (a *app) routes(b *board) http.Handler {
	mux := http.NewServeMux()
	read := func(h http.HandlerFunc) http.Handler {
		if a.ReadToken == "" {
			return h
		}
		return guard("SOLOIST_READ_TOKEN", a.ReadToken, h)
	}
	mux.Handle("GET /{$}", read(a.page(b)))
	mux.Handle("GET /api/jobs", read(a.jobs(b)))
	mux.Handle("GET /metrics", read(a.metrics))
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz(b))
	mux.Handle("POST /api/jobs/{job}/stepdown", a.admin(a.stepDown))
	if inFunctions() {
		return plainHeaders(a.functionRoutes(mux))
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

// admin is around all that changes state. A browser that has the token sends it
// along on behalf of any site, so other sites are refused.
func (a *app) admin(h http.HandlerFunc) http.Handler {
	if a.AdminToken == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "SOLOIST_ADMIN_TOKEN is not set: nothing over HTTP changes state", http.StatusForbidden)
		})
	}
	return http.NewCrossOriginProtection().Handler(guard("SOLOIST_ADMIN_TOKEN", a.AdminToken, h))
}

// guard asks for the token of a setting.
func guard(setting, token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !offers(r, token) {
			w.Header().Add("WWW-Authenticate", "Bearer")
			w.Header().Add("WWW-Authenticate", fmt.Sprintf(`Basic realm=%q, charset="UTF-8"`, setting))
			http.Error(w, "want the header Authorization: Bearer, with the token of "+setting+", or the token as the password of any user", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// offers reports whether the request has the token: as such, or as a browser
// sends what was typed as a password.
func offers(r *http.Request, token string) bool {
	scheme, offered, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if _, password, ok := r.BasicAuth(); ok {
		offered = password
	} else if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	got, want := sha256.Sum256([]byte(offered)), sha256.Sum256([]byte(token)) // of equal length, whatever is offered
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	writeJSON(w, body, "")
}
