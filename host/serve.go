package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// serve runs the scheduler until ctx ends, and answers HTTP until the last job
// has returned: a platform that gets no answer takes a replica for dead. Where
// the Functions host wakes the program up, nothing runs in the background.
func serve(ctx context.Context, a *app, _ arguments) int {
	ln, err := a.listen(ctx)
	if err != nil {
		a.log.Error(err.Error())
		return exitFail
	}
	return a.serveOn(ctx, ln)
}

// serveOn is serve, once it listens.
func (a *app) serveOn(ctx context.Context, ln net.Listener) int {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.life = ctx
	b := a.newBoard()
	var err error
	done, watched := a.answer(ln, b, stop), func() {}
	say := sync.OnceFunc(a.sayStopping)
	defer context.AfterFunc(ctx, say)()
	if inFunctions() {
		<-ctx.Done()
	} else {
		clock, storage := a.watchClock(ctx, b), a.watchStorage(ctx, stop)
		watched = func() { clock(); storage() }
		err = a.sched.Run(ctx)
	}
	if refused, ok := errors.AsType[*refusedError](context.Cause(ctx)); ok {
		err = errors.Join(err, refused)
	}
	if ctx.Err() != nil {
		say() // or wait until it is said
	}
	watched()
	if err = errors.Join(err, done()); err != nil {
		a.log.Error("stopped", "error", err)
		return exitFail
	}
	a.log.Info("stopped")
	return exitOK
}

// answer serves HTTP in the background. Trouble with that stops the scheduler;
// done ends it and tells the trouble.
func (a *app) answer(ln net.Listener, b *board, stop context.CancelCauseFunc) (done func() error) {
	s := a.server(b)
	// On a loopback address in Functions all calls come from the host: none is cut off.
	conns := newConnections(inFunctions() && isLocal(a.Addr))
	ended := make(chan error, 1)
	go func() {
		err := conns.serve(s, ln)
		stop(err)
		ended <- err
	}()
	a.log.With(revision()...).Info("listening", "url", url(ln.Addr()), "app", a.App, "replica", a.sched.Replica, "store", a.store)
	return func() error {
		defer b.wait()
		ctx, cancel := context.WithTimeout(context.Background(), a.lastAnswers())
		defer cancel()
		var cut error
		if s.Shutdown(ctx) != nil {
			cut = a.cutOff()
			s.Close()
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return errors.Join(cut, fmt.Errorf("HTTP: %w", err))
		}
		return cut
	}
}

// cutOff is what the end of the process cuts off when requests do not end in
// time. In Functions that is a run, whose outcome is then not written. Elsewhere
// it is a client that reads slowly, which is no reason to fail.
func (a *app) cutOff() error {
	if !inFunctions() {
		return nil
	}
	running := strings.Join(a.sched.Health().Running, ", ")
	if running == "" {
		running = "none, but not all outcomes are written"
	}
	return fmt.Errorf("an invocation goes on %s after the stop began; jobs that run: %s: another replica settles them when their leases have expired", a.lastAnswers(), running)
}

// lastAnswers is how long requests under way may take once all is to end. The
// runs of a function are such requests: they have their grace, and then the
// longest lease of a job to write their outcomes, as no write is tried longer.
func (a *app) lastAnswers() time.Duration {
	if !inFunctions() {
		return 3 * time.Second
	}
	longest := a.Lease // of jobs without a lease of their own
	for _, j := range a.sched.Jobs {
		longest = max(longest, j.Lease)
	}
	return a.sched.Grace + longest
}

// serving ends when serve is to end.
func (a *app) serving() context.Context {
	if a.life == nil {
		return context.Background()
	}
	return a.life
}

// server has limits: a client that is slow, or means ill, must not use it up.
func (a *app) server(b *board) *http.Server {
	return &http.Server{
		Handler:           a.routes(b),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       idleTime(),
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
}

// idleTime is how long a connection stays open without a request. In Functions
// that is longer than the host keeps one, so that the host closes it: a request
// that meets our close is lost. The host keeps one for a minute, which is when
// the next timer comes
// (https://learn.microsoft.com/dotnet/api/system.net.http.socketshttphandler.pooledconnectionidletimeout).
// Elsewhere clients only read, and can ask again.
func idleTime() time.Duration {
	if inFunctions() {
		return 5 * time.Minute
	}
	return 30 * time.Second
}

func (a *app) sayStopping() {
	a.log.Info("stopping: no new runs, a second signal ends at once",
		"running", strings.Join(a.sched.Health().Running, " "), "grace", a.Grace)
}

// Where to listen when nobody has said where and port 8080 is taken, as on a
// machine with several replicas.
const firstPort, lastPort = 8081, 8099

func (a *app) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", a.Addr)
	switch {
	case err == nil:
		return ln, nil
	case os.Getenv("SOLOIST_ADDR") != "":
		return nil, fmt.Errorf("SOLOIST_ADDR is %q: %w", a.Addr, err)
	case onPlatform() && !inFunctions(): // its probes ask port 8080, and would ask another program
		return nil, fmt.Errorf("SOLOIST_ADDR is not set, and the default is %s: %w: set SOLOIST_ADDR to a free port, and the ports of probes and ingress with it", a.Addr, err)
	case inFunctions():
		return nil, fmt.Errorf("FUNCTIONS_CUSTOMHANDLER_PORT is %q: %w", os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"), err)
	}
	name, _, _ := net.SplitHostPort(a.Addr)
	for port := firstPort; port <= lastPort; port++ {
		if ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(name, strconv.Itoa(port))); err == nil {
			a.log.Info(fmt.Sprintf("port 8080 is taken, so this is port %d; SOLOIST_ADDR says otherwise", port))
			return ln, nil
		}
	}
	return nil, fmt.Errorf("SOLOIST_ADDR is not set, and ports 8080 to %d are taken: %w", lastPort, err)
}

// url is what to type on this machine.
func url(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}
