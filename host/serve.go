package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/logging"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/watch"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/store"
)

type serveCommand struct{}

func (*serveCommand) mode() mode { return mode{serves: true} }

// do runs the scheduler until ctx ends, and answers HTTP until the last job
// has returned: a platform that gets no answer takes a replica for dead. Where
// the Functions host wakes the program up, nothing runs in the background.
func (*serveCommand) do(ctx context.Context, a *app.App) int {
	ln, err := web.Listen(ctx, a.Settings.Addr, a.Log)
	if err != nil {
		a.Log.Error(err.Error())
		return exitFail
	}
	return serveOn(ctx, a, ln)
}

// serveOn is the command serve, once it listens.
func serveOn(ctx context.Context, a *app.App, ln net.Listener) int {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cache, watched := newCache(a), func() {}
	beacon := newBeacon(a)
	done := serveHTTP(a, ln, routes(ctx, a, cache, beacon), cache.Close, stop)
	alerts := startAlerts(ctx, a, cache)
	leave := beUp(ctx, beacon)
	say := sync.OnceFunc(func() {
		a.Log.Info("stopping: no new runs, a second signal ends at once",
			"running", strings.Join(a.Scheduler.Health().Running, " "), "grace", a.Scheduler.Grace)
	})
	defer context.AfterFunc(ctx, say)()
	var err error
	if app.InFunctions() {
		<-ctx.Done()
	} else {
		watched = watchAll(ctx, a, cache, stop)
		err = runAll(ctx, a, stop)
	}
	stop(err) // whatever has ended it: what goes on beside the jobs ends with ctx
	if refused, ok := errors.AsType[*watch.RefusedError](context.Cause(ctx)); ok {
		err = errors.Join(err, refused)
	}
	say() // or wait until it is said
	watched()
	alerts()
	err = errors.Join(err, done())
	leave()
	a.Telemetry.Watch(nil) // nothing asks the cache any more
	cache.Wait()
	if err != nil {
		a.Log.Error("stopped", "error", err)
		return exitFail
	}
	a.Log.Info("stopped")
	return exitOK
}

// runAll runs the jobs until ctx ends, once what comes before them is done. An error is that of
// what is given up; a stop is none.
func runAll(ctx context.Context, a *app.App, stop context.CancelCauseFunc) error {
	if err := a.Before.Run(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	settle := keepAlarm(ctx, a, func() { stop(nil) })
	err := a.Scheduler.Run(ctx)
	return errors.Join(err, settle())
}

// newCache returns the cache of the records for pages and metrics.
func newCache(a *app.App) *web.Cache {
	orders := a.Scheduler.Control
	if _, ok := a.Store.(store.Documenter); !ok {
		orders = nil
	}
	cache := web.NewCache(a.Scheduler.Status, orders, a.Replicas())
	cache.Jobs = len(a.Names())
	a.Listen(cache.Hear)
	a.Telemetry.Watch(cache.Statuses)
	return cache
}

// watchAll looks at the clock and the store in the background; done waits for
// the end of that, which comes with the end of ctx.
func watchAll(ctx context.Context, a *app.App, cache *web.Cache, stop context.CancelCauseFunc) (done func()) {
	var all sync.WaitGroup
	all.Go(func() { watch.NewClock(a.Log, a.Skew, cache.Fresh).Run(ctx) })
	all.Go(func() { cache.Prepare(ctx) })
	all.Go(func() { sweepDaily(ctx, a) })
	all.Go(func() { watch.NewStorage(a.Log, a.Scheduler, a.Store, a.Explain, stop).Run(ctx) })
	return all.Wait
}

// routes answer HTTP: the pages, and in Functions its host. Runs for that host
// end with ctx.
func routes(ctx context.Context, a *app.App, cache *web.Cache, beacon *presence.Beacon) http.Handler {
	guard := web.NewGuard(&a.Settings, a.Log)
	if !app.InFunctions() {
		return guard.Around(web.Routes(a, guard, cache, nil))
	}
	f := functions.NewHandler(ctx, a, guard)
	if beacon != nil {
		f.Awake = beacon.Pass
	}
	return guard.Around(f.Around(web.Routes(a, guard, cache, f.Warn())))
}

// serveHTTP serves HTTP in the background. Trouble with that stops the
// scheduler; done ends it, and calls end for the answers that go on and on, and
// returns the trouble.
func serveHTTP(a *app.App, ln net.Listener, h http.Handler, end func(), stop context.CancelCauseFunc) (done func() error) {
	s := web.NewServer(h, a.Log)
	s.RegisterOnShutdown(end)
	// On a loopback address in Functions all calls come from the host: none may be cut off.
	keep := app.InFunctions() && web.IsLocal(a.Settings.Addr)
	ended := make(chan error, 1)
	go func() {
		err := web.Serve(s, ln, keep)
		stop(err)
		ended <- err
	}()
	a.Log.With(app.Revision()...).Info("listening", "url", web.URL(ln.Addr()), "app", a.Settings.App, "replica", a.Scheduler.Replica, "store", a.Place)
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lastAnswers(a))
		defer cancel()
		var cut error
		if s.Shutdown(ctx) != nil {
			cut = cutOff(a)
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
func cutOff(a *app.App) error {
	if !app.InFunctions() {
		return nil
	}
	running := strings.Join(a.Scheduler.Health().Running, ", ")
	if running == "" {
		running = "none, but not all outcomes are written"
	}
	return fmt.Errorf("an invocation goes on %s after the stop began; jobs that run: %s: another replica settles them when their leases have expired", lastAnswers(a), running)
}

// lastAnswers is how long requests under way may take once all is to end. The
// runs of a function are such requests: they have their grace, and then the
// longest lease of a job to write their outcomes, as no write is tried longer.
func lastAnswers(a *app.App) time.Duration {
	if !app.InFunctions() {
		return 3 * time.Second
	}
	longest := a.Settings.Lease // of jobs without a lease of their own
	for _, j := range a.Scheduler.Jobs {
		longest = max(longest, j.Lease)
	}
	return a.Scheduler.Grace + longest
}

// What an overrun may still say. By then a hundredth of the lease is left, and
// the shortest on Azure has 15 s; a log without a reader must not delay it.
// It goes past the queue of the log, so that what is said is written.
const (
	lastWords = 100 * time.Millisecond
	maxDump   = 64 << 10 // bytes of goroutines
)

// endOverrun ends the process under a run that goes on without its lease, so
// that it is gone before another replica has it. The log has no queue.
func endOverrun(log *slog.Logger, exit func(code int), job string, cause error) {
	code := exitOverrun
	if app.InFunctions() {
		code = exitRestart
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		b := make([]byte, maxDump)
		log.Error("the process exits, so that the lease cannot be held by two: a run goes on though its context has ended",
			"job", job, "cause", cause, "code", code, "goroutines", logging.Dump(string(b[:runtime.Stack(b, true)])))
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	exit(code)
}
