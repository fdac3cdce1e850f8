package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/logging"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/watch"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/history"
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
	guard := web.NewGuard(&a.Settings, a.Log)
	address := ownAddress(a, guard, ln)
	done := serveHTTP(a, ln, routes(ctx, a, guard, cache, beacon), cache.Close, stop)
	if address != "" {
		a.Log.Info("changes can be made on the page at this address: keep it to yourself", "url", address)
	}
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
	if err := a.Before.Run(ctx); ctx.Err() != nil {
		return nil //nolint:nilerr // it is the stop
	} else if err != nil {
		return err
	}
	settle := keepAlarm(ctx, a, func() { stop(nil) })
	err := a.Scheduler.Run(ctx)
	return errors.Join(err, settle())
}

// newCache returns the cache of the records for pages and metrics.
func newCache(a *app.App) *web.Cache {
	orders := a.Control
	if _, ok := a.Store.(store.Documenter); !ok {
		orders = nil
	}
	cache := web.NewCache(a.Statuses, orders, a.Replicas())
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

// ownAddress is the address of the page with a token for changes that is made for this process, where only this machine
// reaches the program, the records are in a directory, and no token is set. Empty: elsewhere.
func ownAddress(a *app.App, guard *web.Guard, ln net.Listener) string {
	_, isDir := a.Store.(local.Dir)
	if _, given := a.Store.(*local.Dir); !isDir && !given || !guard.Local() || app.OnPlatform() || app.InFunctions() ||
		a.Settings.AdminToken != "" || a.Settings.ReadToken != "" {
		return ""
	}
	return guard.MakeToken(ln.Addr())
}

// routes answer HTTP: the pages, and in Functions its host. Runs for that host
// end with ctx.
func routes(ctx context.Context, a *app.App, guard *web.Guard, cache *web.Cache, beacon *presence.Beacon) http.Handler {
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
	greet(a, web.URL(ln.Addr()))
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

// greet says where HTTP listens; to somebody at a terminal also what runs here, and when.
func greet(a *app.App, url string) {
	if a.Settings.LogFormat == "json" || !a.Console.OnTerminal(a.Console.Stdout) {
		a.Log.With(app.Revision()...).Info("listening", "url", url, "app", a.Settings.App, "replica", a.Scheduler.Replica, "store", a.Place)
		return
	}
	var b strings.Builder
	width := a.Console.Width() - len("    ") // by which the log sets it off
	format.Wrapped(&b, fmt.Sprintf("app %s, replica %s, records in %s", a.Settings.App, a.Scheduler.Replica, a.Place), width)
	printComing(&b, a, format.Clock{Now: a.Now(), Zone: time.Local}, width) // in the zone of the lines below
	a.Log.Info("listening on "+url, "jobs", logging.Dump(b.String()))
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

// lastPings is how long pings that are on their way may take once all is to end.
const lastPings = 2 * time.Second

// startAlerts looks for what is wrong with jobs, and sends messages about it, until ctx ends
// or stop is called. Without a receiver it does nothing.
func startAlerts(ctx context.Context, a *app.App, cache *web.Cache) (stop func()) {
	documents, ok := a.Scheduler.Store.(store.Documenter)
	if a.Settings.AlertWebhook == "" || !ok {
		return func() {}
	}
	n := alert.NewNotifier(alert.Config{App: a.Scheduler.App, Replica: a.Scheduler.Replica, Store: documents, Failures: a.Settings.AlertFailures,
		Webhook: &alert.Webhook{URL: a.Settings.AlertWebhook, Secret: a.Settings.AlertSecret, Client: alert.NewClient()},
		Look:    cache.Statuses, Health: a.Scheduler.Health, Control: a.Control, Late: lateness(a), Now: a.Now, Elapsed: elapsed.Now, Log: a.Log})
	a.Listen(n.Hear)
	return inBackground(ctx, n.Run)
}

// lateness returns how late a tick of a job may be claimed. After the death of a replica that
// had only acquired the lease, the next one has it a lease later.
func lateness(a *app.App) func(job string) time.Duration {
	late := map[string]time.Duration{}
	for i := range a.Scheduler.Jobs {
		j := &a.Scheduler.Jobs[i]
		for _, name := range soloist.ShardNames(j.Name, j.Shards) {
			late[name] = max(j.Late.Start, 2*j.Lease)
		}
	}
	return func(job string) time.Duration { return late[job] }
}

// sendPings notifies the dead-man's switches of the program's jobs of what runs here. done waits
// for the last ones, not for long.
func sendPings(a *app.App) (done func()) {
	if len(a.Pings) == 0 {
		return func() {}
	}
	p := alert.NewPings(a.Scheduler.App, a.Pings, alert.NewClient(), a.Log)
	a.Listen(p.Hear)
	return func() { p.Close(lastPings) }
}

// detailsOfJob is about how many bytes of details of failures are kept of each job: some hundred failures, or some thousand.
const detailsOfJob = 4 << 20

// keepHistory writes the outcomes of the jobs to logs next to their records, for as long as
// SOLOIST_HISTORY says, and details of failures. stop writes what waits.
func keepHistory(a *app.App) (stop func()) {
	if a.Settings.History == 0 {
		return func() {}
	}
	asked := os.Getenv("SOLOIST_HISTORY") != ""
	if a.Logs == nil && asked {
		a.Log.Warn("SOLOIST_HISTORY has no effect: the store keeps no logs, as it does not implement store.Appender")
	}
	if a.Logs == nil {
		return func() {}
	}
	s := struct {
		store.Store
		store.Appender
	}{a.Scheduler.Store, a.Logs}
	ctx, refused := context.WithCancel(context.Background())
	w := &history.Writer{Store: s, App: a.Settings.App, Keep: history.Keep{Age: a.Settings.History}, Details: detailsOfJob}
	w.Failed = func(job string, err error) {
		switch {
		case asked || !errors.Is(err, fs.ErrPermission):
			a.Log.Warn("the history of a job could not be written: trying again", "job", job, "error", err)
		case ctx.Err() == nil: // who has not asked for a history needs no permission for it
			refused()
			a.Log.Info("no history is kept: the store refuses it; SOLOIST_HISTORY=0 says so, too", "job", job, "error", err)
		}
	}
	a.Listen(func(e event.Event) {
		if ctx.Err() == nil {
			w.Take(e)
		}
	})
	return inBackground(ctx, w.Run)
}

// inBackground runs something until stop is called, which waits for its end.
func inBackground(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { run(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}

// newBeacon returns what writes that this replica is up; nil: SOLOIST_PRESENCE is 0, or the
// store keeps no documents.
func newBeacon(a *app.App) *presence.Beacon {
	documents, ok := a.Scheduler.Store.(store.Documenter)
	if a.Settings.Presence == 0 || !ok {
		return nil
	}
	work, _ := a.Work()
	b := presence.New(presence.Config{App: a.Scheduler.App, Replica: a.Scheduler.Replica, Store: documents, Every: a.Settings.Presence,
		Woken: app.InFunctions(), Self: a.Self, Work: work, Log: a.Log, Saw: sayPrograms(a)})
	a.Listen(func(e event.Event) {
		if replica, begun := lostBy(&e); replica != "" && replica != a.Scheduler.Replica {
			b.Lose(replica, begun)
		}
	})
	return b
}

// sayPrograms returns what logs that other programs use this app, once each time that they change.
func sayPrograms(a *app.App) func(presence.Reading) {
	said := ""
	return func(r presence.Reading) {
		text := view.Programs(a, r)
		if text != "" && text != said {
			a.Log.Warn(text, "advice", view.ProgramsAdvice)
		}
		said = text
	}
}

// lostBy returns the replica that died in a run which this one has settled, and when that run began.
func lostBy(e *event.Event) (replica string, begun time.Time) {
	switch o := &e.Outcome; {
	case e.Kind == event.TookOver && e.Note == "died":
		return e.Former.Replica, e.Former.Since
	case e.Kind == event.Settled && o.Status == event.Abandoned && strings.HasPrefix(o.Reason, "its runner died"):
		return o.Replica, o.Start
	}
	return "", time.Time{}
}

// beUp writes in the background that this replica is up; in Functions each call does. leave,
// which comes after the last run has ended, ends that, and writes that it has stopped.
func beUp(ctx context.Context, b *presence.Beacon) (leave func()) {
	if b == nil {
		return func() {}
	}
	if app.InFunctions() {
		return b.Leave
	}
	stop := inBackground(context.WithoutCancel(ctx), b.Run) // until the last run has ended
	return func() {
		stop()
		b.Leave()
	}
}

// fleetOf is what the replicas have reported; nil: that cannot be read.
func fleetOf(ctx context.Context, a *app.App, reader *presence.Reader, all []desk.Status) *view.Fleet {
	if reader == nil {
		return nil
	}
	r, err := reader.Read(ctx)
	switch {
	case errors.Is(err, presence.ErrForeign):
		return view.UnreadFleet(a, err)
	case err != nil: // the records show that, too
		return nil
	}
	return view.FleetOf(a, r, all)
}

// printReplicas shows a table of the replicas, and what differs between them.
func printReplicas(c app.Console, fleet *view.Fleet, width int, colour bool) {
	if fleet == nil {
		return
	}
	if len(fleet.Replicas) > 0 {
		fmt.Fprintln(c.Stdout)
		g := format.NewGrid("REPLICA\tSTATE\tVERSION\tPLATFORM\tSEEN\tSKEW", 8, 10, 8, 8, 7, 4)
		for _, r := range fleet.Replicas {
			g.Row(r.Name, r.StateWords(), r.VersionWords(), format.Join(r.Platform), format.Relative(r.Seen, fleet.At), r.SkewWords())
			g.Tone(r.Tone())
		}
		g.Print(c.Stdout, width, colour)
	}
	for _, text := range fleet.Differs {
		fmt.Fprintln(c.Stdout)
		format.Wrapped(c.Stdout, text, width)
	}
}
