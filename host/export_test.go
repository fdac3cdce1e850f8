package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/soloist-go/soloist"
)

// Handler is what serve answers HTTP with, and the scheduler behind it. It has
// written the log when it returns. wait returns when no reading of the records is
// under way.
func Handler(p Program) (h http.Handler, run func(), wait func(), err error) {
	q := p.filled()
	c, _, err := parse([]string{"serve"})
	if err != nil {
		return nil, nil, nil, err
	}
	a, err := q.open(c)
	if err != nil {
		return nil, nil, nil, err
	}
	b := a.newBoard()
	routes := a.routes(b)
	a.flush()
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.flush()
		routes.ServeHTTP(w, r)
	})
	return h, func() { a.sched.RunDue(context.Background(), soloist.Wake{}) }, b.wait, nil
}

// Server is what serve answers HTTP with, limits and all, and the scheduler
// behind it.
func Server(p Program) (s *http.Server, run func(), err error) {
	a, err := p.filled().open(&command{name: "serve", serves: true})
	if err != nil {
		return nil, nil, err
	}
	return a.server(a.newBoard()), func() { a.sched.RunDue(context.Background(), soloist.Wake{}) }, nil
}

// Serve is the command, on a listener of the test's.
func Serve(ctx context.Context, p Program, ln net.Listener) (code int, err error) {
	a, err := p.filled().open(&command{name: "serve", serves: true})
	if err != nil {
		return 0, err
	}
	defer a.flush()
	return a.serveOn(ctx, ln), nil
}

// WithExit is p as Main runs it, with another end of the process.
func WithExit(p Program, exit func(code int)) Program {
	p.exit = exit
	return p
}

// Hurried is p whose doctor gives each check no more time than this.
func Hurried(p Program, limit time.Duration) Program {
	p.hurry = limit
	return p
}

// Clock returns how often the skew is looked at.
func Clock(log *slog.Logger, skew func() time.Duration, ask func(context.Context) bool) (look func()) {
	c := clockWatch{log: log, skew: skew, ask: ask}
	return func() { c.look(context.Background()) }
}
