package web

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
)

// NewServer answers with h. It has limits: a client that is slow, or means ill,
// must not use it up.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       idleTime(),
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// idleTime is how long a connection stays open without a request. In Functions
// that is longer than the host keeps one, so that the host closes it: a request
// that meets our close is lost. The host keeps one for a minute, which is when
// the next timer comes
// (https://learn.microsoft.com/dotnet/api/system.net.http.socketshttphandler.pooledconnectionidletimeout).
// Elsewhere clients only read, and can ask again.
func idleTime() time.Duration {
	if app.InFunctions() {
		return 5 * time.Minute
	}
	return 30 * time.Second
}
