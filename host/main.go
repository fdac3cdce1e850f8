// Package host makes a program of jobs and singletons: command line, settings,
// storage, logs, HTTP.
//
//	func main() { host.Main(soloist.Job{...}, soloist.Singleton{...}) }
//
// is all of it. The program's help lists its commands and settings. A program that has something to
// do before its jobs start, once over all replicas, such as a migration, is a [Program] with Before.
//
// Where a run has lost its lease, or has stalled, and goes on anyway, Main
// ends the process a sixth of the lease after the run's context, before another
// replica can have the lease: with code 3, in Functions with 200, after which
// its host starts the program again.
//
// # What is not promised
//
//   - That a graceful stop ends while a job ignores the end of its context. It
//     waits for the job; the platform, or a second signal, does not.
//   - That a job which ignores its time-out ends. It keeps its lease, the
//     replica takes nothing new, and /healthz answers 503 with status "overrun":
//     a probe has to restart the process. In Functions the host does when the
//     invocation has lasted for functionTimeout.
//   - That other jobs are spared when the process ends: their runs end with it,
//     and are settled as if their runner had died.
//   - That [Program.Run] ends the process. Its caller has to look at /healthz.
//   - That a clock which is wrong is noticed at once, or by less than the store
//     can prove, a second on Azure. Ticks come by the store's clock anyway.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/before"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/logging"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/store"
)

// Main runs the program and exits. The first SIGTERM or interrupt stops it
// gracefully, the second at once, with code 130.
func Main(work ...soloist.Work) {
	p := Program{Work: work}
	p.Main()
}

// Main is [Main] for a program that has more than work, such as something to do before its jobs
// start, or a store of its own.
func (p *Program) Main() {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		for first := time.Now(); time.Since(first) < sameSignal; {
			<-signals
		}
		os.Exit(130)
	}()
	q := *p
	q.process, q.exit = true, os.Exit
	os.Exit(q.Run(ctx))
}

// sameSignal is for senders that signal both the process and its group, as
// timeout(1) does: that is one wish to stop, not two.
const sameSignal = 500 * time.Millisecond

// Run does what Args say and returns the exit code. The end of ctx is a
// graceful stop; Run returns when all that it started has ended.
func (p *Program) Run(ctx context.Context) int {
	p = p.filled()
	c, err := parse(p)
	if err != nil {
		p.console().Tell("%v", err)
		if _, said := errors.AsType[*unknownCommand](err); !said {
			fmt.Fprintf(p.Stderr, "%s help lists the commands\n", p.Name)
		}
		return exitUsage
	}
	if c, ok := c.(appCommand); ok {
		return p.with(c.mode(), func(a *app.App) int { return c.do(ctx, a) })
	}
	return c.(command).run(ctx, p)
}

// The codes that a program exits with. A second signal's is 130.
const (
	exitOK      = 0
	exitFail    = 1   // something went wrong
	exitUsage   = 2   // something has to be said differently: arguments or settings
	exitOverrun = 3   // a run went on without its lease
	exitRestart = 200 // the same in Functions, whose host restarts such a program without counting it as a crash
)

// A Program is what [Main] runs. Its settings are the environment's.
type Program struct {
	// Work is the program's jobs and singletons.
	Work []soloist.Work

	// Before is done before the first job of a process starts, in this order: by serve, by tick, by
	// run --here, and in Functions by the first invocation. Each is done once for its key, by one
	// replica of all; the others wait for it. Until then /readyz answers 503, and says what is
	// waited for, and /healthz 200. If one is given up, the program ends with code 1, and says why;
	// an invocation fails, and the next one tries again. An empty Key is the version of the build:
	// the main module's version, else the revision, as debug.ReadBuildInfo has it. A Once without a
	// Store gets the program's, with its app and the lease of SOLOIST_LEASE.
	Before []*soloist.Once

	// Groups are how many runs of each [soloist.Job.Group] take place at a time, as in a Scheduler.
	Groups map[string]int

	// Store holds leases and records. Nil: what SOLOIST_STORAGE says.
	Store store.Store

	// Telemetry sends metrics and traces to a collector that the environment names: Export of the
	// module github.com/soloist-go/soloist/host/otel. Nil: a warning says so if the environment names
	// one.
	Telemetry telemetry.Exporter

	// OpenStore opens the store of a SOLOIST_STORAGE that is a URL of another kind than a blob
	// service's: postgres.OpenURL of host/postgres is one for postgres://. It should not connect yet,
	// as commands that need no store open it too, and its errors should not show the URL. A store with
	// a method Close() is closed at the end. Nil: there are no such URLs.
	OpenStore func(url string) (store.Store, error)

	// Name is what help calls the program, and the app of a program that runs
	// nowhere in particular. Empty: the name of its file.
	Name string

	// Args are the arguments without the name. Nil: the process's.
	Args []string

	// Stdout is for answers and the logs of serve, Stderr for mistakes and the
	// logs of other commands. Nil: the process's.
	Stdout, Stderr io.Writer

	// Now is the wall clock. Nil: time.Now.
	Now func() time.Time

	queue    alarm.Queue    // of alarms, if the settings ask for them; nil: the storage account's queue; for tests
	terminal bool           // Stdout and Stderr are one, whatever they are; for tests
	process  bool           // it is all there is in this process
	exit     func(code int) // ends the process; nil: that is not ours to do
}

// A mode is how a command uses the program.
type mode struct {
	serves     bool // it runs jobs until it is stopped, and its output is its log
	runs       bool // it runs jobs, whose logs are wanted
	byOperator bool // records name the operator in place of the replica
	ticks      bool // it makes a pass, in the time that the platform gives
	apart      bool // it only writes files, for other machines
	checks     bool // it is asked for mistakes, also for those that harm no other job
	strict     bool // a variable that looks like a setting and is none is a mistake
}

// statusTime bounds the calls of a command to the store: somebody waits for it.
const statusTime = 10 * time.Second

// open reads the settings, and returns all that is wrong with them and the jobs.
func (p *Program) open(m mode) (*app.App, error) {
	author := app.Replica // of what is done, in records
	if m.byOperator {
		author = operator
	}
	a, err := app.Open(app.Config{Work: p.Work, Groups: p.Groups, Store: p.Store, OpenStore: p.OpenStore,
		Queue: p.queue, Export: p.Telemetry, Console: p.console(),
		Now: p.Now, Replica: author(), Serves: m.serves, Runs: m.runs, Apart: m.apart})
	if p.process {
		slog.SetDefault(a.Scheduler.Logger) // jobs that use it end up where they should
		a.Telemetry.MakeDefault()           // the same for telemetry
	}
	if app.InFunctions() {
		functions.TellBegins(a.Scheduler.Jobs)
		if m.serves {
			limits, _ := functions.LimitsOf(a) // serve reports the error
			a.Scheduler.Grace = limits.Grace
		}
	}
	if m.ticks {
		a.LimitGrace()
	}
	if p.exit != nil {
		log := a.Scheduler.Logger
		a.Scheduler.Overrun = func(job string, cause error) { endOverrun(log, p.exit, job, cause) }
	}
	at, invalid := desk.Of(a.Scheduler)
	if m.serves || m.runs {
		at.Replica.Hide(logging.Mask(a.Settings.Secrets(a.Pings)))
	}
	if m.checks {
		invalid = errors.Join(invalid, checkDeadlines(a))
	}
	if m.strict {
		invalid = errors.Join(app.RefuseUnknown(a), invalid)
	}
	var mistakes error
	a.Before, mistakes = before.New(before.Config{Given: p.Before, Scheduler: a.Scheduler, Log: a.Log, Lease: a.Settings.Lease, Version: app.Version(), Begins: functions.Begins})
	return a, errors.Join(err, invalid, mistakes)
}

// with opens the program for what a command does with it. Mistakes are printed, and
// their code returned.
func (p *Program) with(m mode, do func(a *app.App) int) int {
	a, err := p.open(m)
	defer a.CloseStore()
	defer a.Flush()
	defer a.Telemetry.Close()
	if err != nil {
		a.Console.Complain(err)
		for _, text := range a.Strange { // perhaps the cause
			fmt.Fprintf(p.Stderr, "  %s\n", format.Hanging(text))
		}
		return exitUsage
	}
	a.Warn()
	if m.serves || m.runs {
		if p.process {
			// Jobs go on when the reader of the log has gone, without a log. The signal is caught and not
			// ignored, since the commands that a job starts would ignore it too.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		}
		defer keepHistory(a)()
		defer sendPings(a)()
		var looked sync.WaitGroup
		defer looked.Wait()
		looked.Go(func() { // nothing that is due waits for it
			if trouble := app.FindHost(a); trouble != "" {
				a.Log.Error(trouble)
			}
		})
	} else if !m.apart && !m.checks {
		if a.Lost = app.FindHost(a); a.Lost != "" {
			a.Console.Tell("%s", a.Lost)
		}
	}
	return do(a)
}

func (p *Program) console() app.Console {
	return app.Console{Name: p.Name, Stdout: p.Stdout, Stderr: p.Stderr, Terminal: p.terminal}
}

// filled returns a copy in which every field has a value.
func (p *Program) filled() *Program {
	q := *p
	q.Name = cmp.Or(q.Name, programName(os.Args[0]))
	q.Stdout, q.Stderr = cmp.Or[io.Writer](q.Stdout, os.Stdout), cmp.Or[io.Writer](q.Stderr, os.Stderr)
	if q.Args == nil {
		q.Args = os.Args[1:]
	}
	if q.Now == nil {
		q.Now = time.Now
	}
	return &q
}

// programName is the name of the program's file; only Windows adds to it.
func programName(path string) string {
	name := filepath.Base(path)
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".exe") {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// operator is who calls this program.
func operator() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"), "unknown")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return name + "@" + machine
}
