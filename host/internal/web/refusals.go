package web

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/soloist-go/soloist/host/internal/format"
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
	more = append(more, "path", format.Brief(r.URL.Path))
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
		who = append(who, "forwarded", format.Brief(forwarded))
	}
	return who
}
