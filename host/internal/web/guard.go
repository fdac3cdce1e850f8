package web

import (
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
)

// A Guard decides which requests are answered.
type Guard struct {
	read, admin tokenGuard // without a token: all may read, and nobody may change anything
	addr        string     // where the program listens
	refused     *refusals
}

// NewGuard is for a program with these settings.
func NewGuard(s *app.Settings, log *slog.Logger) *Guard {
	refused := newRefusals(log)
	return &Guard{addr: s.Addr, refused: refused,
		read:  tokenGuard{"SOLOIST_READ_TOKEN", s.ReadToken, refused},
		admin: tokenGuard{"SOLOIST_ADMIN_TOKEN", s.AdminToken, refused}}
}

// Around is around all that is answered.
func (g *Guard) Around(h http.Handler) http.Handler { return plainHeaders(g.aroundLocal(h)) }

func plainHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// aroundLocal refuses the names that other sites have made to lead to this
// machine, where it listens for this machine alone: a browser here takes such a
// site for the page's own and shows it all answers.
func (g *Guard) aroundLocal(h http.Handler) http.Handler {
	if !g.Local() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsLocal(r.Host) {
			g.refused.note(r, "request refused: the header Host is of another machine", "host", format.Brief(r.Host))
			fail(w, http.StatusForbidden, "the header Host is of another machine: want localhost, 127.0.0.1 or [::1], since the program listens on "+g.addr)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Local reports whether only this machine reaches the program.
func (g *Guard) Local() bool { return IsLocal(g.addr) }

// IsLocal reports whether an address, with or without a port, is this machine's
// loopback address.
func IsLocal(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(addr, "["), "]")
	}
	return strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()
}

// Read is around what only reads.
func (g *Guard) Read(h http.HandlerFunc) http.Handler {
	if g.read.token == "" {
		return h
	}
	return g.read.around(h)
}

// mayRead reports whether a request may be told everything.
func (g *Guard) mayRead(r *http.Request) bool {
	return g.read.token == "" || g.read.check(r) == http.StatusOK
}

// changes reports whether a request may change something.
func (g *Guard) changes(r *http.Request) access {
	switch {
	case g.admin.token == "":
		return accessOff
	case offers(r, g.admin.token):
		return accessYes
	}
	return accessNo
}

// Admin is around all that changes state. A browser that has the token sends it
// along on behalf of any site, so other sites are refused.
func (g *Guard) Admin(h http.HandlerFunc) http.Handler {
	if g.admin.token == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusForbidden, "SOLOIST_ADMIN_TOKEN is not set: nothing over HTTP changes state")
		})
	}
	return http.NewCrossOriginProtection().Handler(g.admin.around(h))
}

// Refused logs a request that is turned away, as far as the limit of refusals goes.
func (g *Guard) Refused(r *http.Request, text string, more ...any) { g.refused.note(r, text, more...) }
