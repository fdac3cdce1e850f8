package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/internal/alarm"
)

// opened is the program as serve opens it.
func opened(p Program) (*app.App, error) {
	return p.filled().open(mode{serves: true})
}

// Handler is what serve answers HTTP with, and the scheduler behind it. It has
// written the log when it returns. wait returns when no reading of the records is
// under way.
func Handler(p Program) (h http.Handler, run func(), wait func(), err error) {
	a, err := opened(p)
	if err != nil {
		return nil, nil, nil, err
	}
	cache := newCache(a)
	answers := routes(context.Background(), a, web.NewGuard(&a.Settings, a.Log), cache, newBeacon(a))
	a.Flush()
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.Flush()
		answers.ServeHTTP(w, r)
	})
	return h, func() { a.Scheduler.RunDue(context.Background(), soloist.Wake{}) }, cache.Wait, nil
}

// Server is Handler with the limits of a server.
func Server(p Program) (s *http.Server, run func(), err error) {
	h, run, _, err := Handler(p)
	return web.NewServer(h, slog.New(slog.DiscardHandler)), run, err
}

// Serve is the command, on a listener of the test's.
func Serve(ctx context.Context, p Program, ln net.Listener) (code int, err error) {
	a, err := opened(p)
	if err != nil {
		return 0, err
	}
	defer a.Flush()
	return serveOn(ctx, a, ln), nil
}

// WithExit is p as Main runs it, with another end of the process.
func WithExit(p Program, exit func(code int)) Program {
	p.exit = exit
	return p
}

// OnTerminal is p whose outputs are a terminal.
func OnTerminal(p Program) Program {
	p.terminal = true
	return p
}

// WithQueue is p with another queue of alarms than that of its storage account.
func WithQueue(p Program, queue alarm.Queue) Program {
	p.queue = queue
	return p
}
