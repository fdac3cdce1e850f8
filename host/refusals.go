package host

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

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
	more = append(more, "path", brief(r.URL.Path))
	if n := f.unlogged.Swap(0); n > 0 {
		more = append(more, "unlogged", n)
	}
	f.log.Warn(text, append(more, caller(r)...)...)
	return true
}

// caller is who has sent a request, for the log. A proxy names its client in a
// header, which anybody else can send too.
func caller(r *http.Request) []any {
	who := []any{"remote", r.RemoteAddr}
	if forwarded := r.Header.Get("X-Forwarded-For"); forwarded != "" {
		who = append(who, "forwarded", brief(forwarded))
	}
	return who
}

// aroundLocal refuses the names that other sites have made to lead to this
// machine, where it listens for this machine alone: a browser here takes such a
// site for the page's own and shows it all answers.
func (a *app) aroundLocal(h http.Handler) http.Handler {
	if !isLocal(a.Addr) {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			a.refused.note(r, "request refused: the header Host is of another machine", "host", brief(r.Host))
			http.Error(w, "the header Host is of another machine: want localhost, 127.0.0.1 or [::1], since the program listens on "+a.Addr, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isLocal reports whether an address, with or without a port, is this machine's
// loopback address.
func isLocal(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(addr, "["), "]")
	}
	return strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()
}
