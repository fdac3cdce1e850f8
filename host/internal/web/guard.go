package web

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"golang.org/x/time/rate"
)

// A Guard decides which requests are answered.
type Guard struct {
	sessions *sessions // with the tokens: without one for readers all may read, without the admin's no caller may change anything
	addr     string    // where the program listens
	refused  *refusals
	made     bool // the admin's token: see MakeToken
}

// NewGuard is for a program with these settings. It warns of those that let anybody read.
func NewGuard(s *app.Settings, log *slog.Logger) *Guard {
	if s.ReadToken == "" && s.Addr != "" && !IsLocal(s.Addr) {
		log.Warn("everybody who reaches this address can read the API and the metrics: set SOLOIST_READ_TOKEN, or SOLOIST_ADDR to a loopback address", "addr", s.Addr)
	}
	tokens := map[role]string{reader: s.ReadToken, adminRole: s.AdminToken}
	return &Guard{addr: s.Addr, refused: newRefusals(log),
		sessions: &sessions{app: s.App, tokens: tokens, ended: map[string]time.Time{}}}
}

// MakeToken makes an admin's token for this process, and returns the address of the page that has it: in its fragment,
// which browsers send nowhere. The page signs in with it. It is for a program that only this machine reaches and that
// keeps its records there: who may read what it prints may write its records, too.
func (g *Guard) MakeToken(addr net.Addr) (address string) {
	token := rand.Text()
	g.made, g.sessions.tokens[adminRole] = true, token
	if _, port, err := net.SplitHostPort(addr.String()); err == nil {
		g.sessions.port = "-" + port // replicas beside it have tokens of their own
	}
	return URL(addr) + "#token=" + token
}

// Around is around all that is answered. Where the program listens for this machine alone, it
// refuses the names that other sites have made to lead to this machine: a browser here takes
// such a site for the page's own and shows it all answers.
func (g *Guard) Around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if g.Local() && !IsLocal(r.Host) {
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

// roleOf is what the caller of a request may do, by its token or its session.
func (g *Guard) roleOf(r *http.Request) role {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if as := g.sessions.roleBy(token); as != nobody && strings.EqualFold(scheme, "Bearer") {
		return as
	}
	if s, ok := g.sessions.open(r); ok {
		return s.role
	}
	if g.sessions.tokens[reader] == "" {
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
	case g.sessions.tokens[adminRole] == "":
		return accessOff
	case as == adminRole:
		return accessYes
	}
	return accessNo
}

// howTo says how the caller of a request gets to change something; empty: they may.
func (g *Guard) howTo(r *http.Request) string {
	switch as := g.changes(r); {
	case as == accessYes:
		return ""
	case as == accessOff:
		return "Nobody can make changes here: set SOLOIST_ADMIN_TOKEN on each replica, 16 characters or more, and sign in with it. " +
			"The program's commands make changes without it."
	case g.made:
		return "To make changes, open the address that ends in #token=, which this replica has printed at its start."
	}
	return "To make changes, sign in with the value of SOLOIST_ADMIN_TOKEN."
}

// Read is around what only reads.
func (g *Guard) Read(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.mayRead(r) {
			h(w, r)
			return
		}
		g.refuse(w, r, "SOLOIST_READ_TOKEN")
	})
}

// Admin is around all that changes state. A browser that has a session, or the host of
// Functions, would send the request on behalf of any site, so other sites are refused.
func (g *Guard) Admin(h http.HandlerFunc) http.Handler {
	return ownSite(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.sessions.tokens[adminRole] == "":
			fail(w, http.StatusForbidden, "SOLOIST_ADMIN_TOKEN is not set: nothing over HTTP changes state")
		case g.roleOf(r) == adminRole:
			h(w, r)
		default:
			g.refuse(w, r, "SOLOIST_ADMIN_TOKEN")
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

// signedIn reports whether a request is of a browser that has signed in.
func (g *Guard) signedIn(r *http.Request) bool {
	_, ok := g.sessions.open(r)
	return ok
}

// nameOf is who has sent a request, by their own account or, behind the sign-in of Container
// Apps and App Service, by the platform's
// (https://learn.microsoft.com/azure/app-service/configure-authentication-user-identities).
func (g *Guard) nameOf(r *http.Request) string {
	s, _ := g.sessions.open(r)
	return cmp.Or(s.name, format.Brief(r.Header.Get("X-MS-CLIENT-PRINCIPAL-NAME")), "admin over HTTP")
}

// Refused logs a request that is turned away, as far as the limit of refusals goes.
func (g *Guard) Refused(r *http.Request, text string, more ...any) { g.refused.note(r, text, more...) }

// A role is what a caller may do. The admin may read, too.
type role string

const (
	nobody    role = ""
	reader    role = "read"
	adminRole role = "admin"
)

// An access says whether a caller may change something.
type access string

const (
	accessOff access = "off" // there is no admin token, so no caller may
	accessNo  access = "no"  // the caller has not shown the admin token
	accessYes access = "yes"
)

// roleBy is the role that a token gives.
func (all *sessions) roleBy(token string) role {
	for _, as := range []role{adminRole, reader} {
		if right := all.tokens[as]; right != "" && equal(token, right) {
			return as
		}
	}
	return nobody
}

// equal takes a time that does not depend on the token.
func equal(offered, token string) bool {
	got, want := sha256.Sum256([]byte(offered)), sha256.Sum256([]byte(token)) // of equal length, whatever is offered
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// refuse answers a request without the right token, which is a setting's. The right token is admitted before, whatever
// others offer at the same time: a limit before the comparison would let a guesser lock the
// operator out, since both have one address behind a proxy. The length of the token defeats
// guesses. The limit bounds what they cost, and what they write to the log. A request without a
// token is no guess.
//
// It asks for no password, as a browser would show a box for it, keep it until it is closed, and
// send it on behalf of other sites.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, setting string) {
	if r.Header.Get("Authorization") != "" && !g.refused.note(r, "request refused: wrong token", "setting", setting) {
		tooMany(w)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	fail(w, http.StatusUnauthorized, "want the header Authorization: Bearer, with the token of "+setting+", or the session of a browser that has signed in on the page")
}

// tooMany answers a guess beyond the limit.
func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", refusalSeconds)
	w.Header().Set("Connection", "close") // so that each guess costs a connection
	fail(w, http.StatusTooManyRequests, "too many wrong tokens: wait "+refusalSeconds+" s")
}

// So many refusals are answered in full and logged at once, then one each
// refusalPace.
const (
	refusalBurst   = 20
	refusalPace    = 10 * time.Second
	refusalSeconds = "10" // refusalPace, for Retry-After
)

// refusals are the requests that are turned away for what they offer. They are
// logged with their address, and a flood of them floods no log.
type refusals struct {
	log      *slog.Logger
	limit    *rate.Limiter
	unlogged atomic.Int64
}

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, limit: rate.NewLimiter(rate.Every(refusalPace), refusalBurst)}
}

// note logs a refusal and reports whether it is within the limit. One beyond it
// is counted, and the next line of the log has the count.
func (f *refusals) note(r *http.Request, text string, more ...any) bool {
	if !f.limit.Allow() {
		f.unlogged.Add(1)
		return false
	}
	more = append(more, "path", format.Brief(r.URL.Path))
	if n := f.unlogged.Swap(0); n > 0 {
		more = append(more, "unlogged", n)
	}
	f.log.Warn(text, caller(r, more...)...)
	return true
}

// caller adds to what is logged who has sent a request. A proxy names its client in a
// header, which anybody else can send too.
func caller(r *http.Request, about ...any) []any {
	about = append(about, "remote", r.RemoteAddr)
	if forwarded := r.Header.Get("X-Forwarded-For"); forwarded != "" {
		about = append(about, "forwarded", format.Brief(forwarded))
	}
	return about
}
