package web

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
)

// A Guard decides which requests are answered.
type Guard struct {
	read, admin tokenGuard // without a token: all may read, and no caller may change anything
	sessions    *sessions
	addr        string // where the program listens
	refused     *refusals
}

// NewGuard is for a program with these settings. It warns of those that let anybody read.
func NewGuard(s *app.Settings, log *slog.Logger) *Guard {
	refused := newRefusals(log)
	if s.ReadToken == "" && s.Addr != "" && !IsLocal(s.Addr) {
		log.Warn("everybody who reaches this address can read the API and the metrics: set SOLOIST_READ_TOKEN, or SOLOIST_ADDR to a loopback address", "addr", s.Addr)
	}
	return &Guard{addr: s.Addr, refused: refused,
		sessions: &sessions{app: s.App, now: time.Now, ended: map[string]time.Time{}},
		read:     tokenGuard{"SOLOIST_READ_TOKEN", s.ReadToken, refused},
		admin:    tokenGuard{"SOLOIST_ADMIN_TOKEN", s.AdminToken, refused}}
}

// Around is around all that is answered.
func (g *Guard) Around(h http.Handler) http.Handler { return plainHeaders(g.aroundLocal(h)) }

func plainHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
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

// tokens are the tokens of the roles.
func (g *Guard) tokens() map[role]string {
	return map[role]string{reader: g.read.token, adminRole: g.admin.token}
}

// roleOf is what the caller of a request may do, by its token or its session.
func (g *Guard) roleOf(r *http.Request) role {
	switch {
	case g.admin.offered(r):
		return adminRole
	case g.read.offered(r):
		return reader
	}
	if s, ok := g.sessions.open(r, g.tokens()); ok {
		return s.role
	}
	if g.read.token == "" {
		return reader
	}
	return nobody
}

// mayRead reports whether a request may see everything.
func (g *Guard) mayRead(r *http.Request) bool { return g.roleOf(r) != nobody }

// changes reports whether a request may change something.
func (g *Guard) changes(r *http.Request) access { return g.changesAs(g.roleOf(r)) }

func (g *Guard) changesAs(as role) access {
	switch {
	case g.admin.token == "":
		return accessOff
	case as == adminRole:
		return accessYes
	}
	return accessNo
}

// Read is around what only reads.
func (g *Guard) Read(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.mayRead(r) {
			h(w, r)
			return
		}
		g.read.refuse(w, g.read.code(r))
	})
}

// Admin is around all that changes state. A browser that has a session, or the host of
// Functions, would send the request on behalf of any site, so other sites are refused.
func (g *Guard) Admin(h http.HandlerFunc) http.Handler {
	return ownSite(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.admin.token == "":
			fail(w, http.StatusForbidden, "SOLOIST_ADMIN_TOKEN is not set: nothing over HTTP changes state")
		case g.roleOf(r) == adminRole:
			h(w, r)
		default:
			g.admin.refuse(w, g.admin.code(r))
		}
	})
}

// ownSite refuses requests that the page of another site makes a browser send.
func ownSite(h http.HandlerFunc) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "the page of another site sent this request")
	}))
	return protection.Handler(h)
}

// signIn begins a session with the role of the token, for one who says that this is their name.
func (g *Guard) signIn(w http.ResponseWriter, r *http.Request, shown, name string) (session, int) {
	for _, as := range []role{adminRole, reader} {
		if token := g.tokens()[as]; token != "" && equal(shown, token) {
			g.refused.log.Info("signed in over HTTP", append([]any{"role", as, "name", format.Brief(name)}, caller(r)...)...)
			return g.sessions.begin(w, r, as, token, format.Brief(name)), http.StatusOK
		}
	}
	switch {
	case cmp.Or(g.read.token, g.admin.token) == "":
		return session{}, http.StatusForbidden
	case g.refused.note(r, "request refused: wrong token", "setting", "SOLOIST_READ_TOKEN or SOLOIST_ADMIN_TOKEN"):
		return session{}, http.StatusUnauthorized
	}
	return session{}, http.StatusTooManyRequests
}

// signedIn reports whether a request is of a browser that has signed in.
func (g *Guard) signedIn(r *http.Request) bool {
	_, ok := g.sessions.open(r, g.tokens())
	return ok
}

// nameOf is who has sent a request, by their own account or, behind the sign-in of Container
// Apps and App Service, by the platform's
// (https://learn.microsoft.com/azure/app-service/configure-authentication-user-identities).
func (g *Guard) nameOf(r *http.Request) string {
	s, _ := g.sessions.open(r, g.tokens())
	return cmp.Or(s.name, format.Brief(r.Header.Get("X-MS-CLIENT-PRINCIPAL-NAME")), "admin over HTTP")
}

func (g *Guard) signOut(w http.ResponseWriter, r *http.Request) {
	s, _ := g.sessions.open(r, g.tokens())
	g.sessions.end(w, r, s)
}

// Refused logs a request that is turned away, as far as the limit of refusals goes.
func (g *Guard) Refused(r *http.Request, text string, more ...any) { g.refused.note(r, text, more...) }
