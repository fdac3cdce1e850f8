// Package host makes a program of jobs and singletons: command line, settings,
// storage, logs, HTTP.
//
//	func main() { host.Main(soloist.Job{...}, soloist.Singleton{...}) }
//
// is all of it. The program's help lists its commands and settings.
//
// Where a run has lost its lease, or has stalled, and goes on all the same, Main
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
//     and are settled as those of a runner that died.
//   - That [Program.Run] ends the process. Its caller has to look at /healthz.
//   - That a clock which is wrong is noticed at once, or by less than the store
//     can prove, a second on Azure. Ticks come by the store's clock all the same.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/store"
)

// Main runs the program and exits. The first SIGTERM or interrupt stops it
// gracefully, the second at once, with code 130.
func Main(work ...soloist.Work) {
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
	p := Program{Work: work, process: true, exit: os.Exit}
	os.Exit(p.Run(ctx))
}

// surviveBrokenPipe keeps the process alive when the reader of its log has gone:
// its jobs go on, without a log. The signal is caught and not ignored, since the
// commands that a job starts would ignore it too.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// sameSignal is for whoever signals both the process and its group, as
// timeout(1) does: that is one wish to stop, not two.
const sameSignal = 500 * time.Millisecond

// A Program is what [Main] runs. Its settings are the environment's.
type Program struct {
	// Work is the program's jobs and singletons.
	Work []soloist.Work

	// Store holds leases and records. Nil: what SOLOIST_STORAGE says.
	Store store.Store

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

	terminal bool           // Stdout and Stderr are one, whatever they are; for tests
	process  bool           // it is all there is in this process
	exit     func(code int) // ends the process; nil: that is not ours to do
	hurry    time.Duration  // the most that a check of doctor has; zero: stepTime, or tokenTime
}

// The codes that a program exits with. A second signal's is 130.
const (
	exitOK      = 0
	exitFail    = 1   // something went wrong
	exitUsage   = 2   // something has to be said differently: arguments or settings
	exitOverrun = 3   // a run went on without its lease
	exitRestart = 200 // the same in Functions, whose host restarts such a program without counting it as a crash
)

// Run does what Args say and returns the exit code. The end of ctx is a
// graceful stop; Run returns when all that it started has ended.
func (p *Program) Run(ctx context.Context) int {
	p = p.filled()
	c, given, err := parse(p.Args)
	if err != nil {
		fmt.Fprintf(p.Stderr, "%s: %v\n\n%s", p.Name, err, usage(p.Name))
		return exitUsage
	}
	if c.bare != nil {
		return c.bare(ctx, p, given)
	}
	a, code := p.openOr(c)
	defer a.Flush()
	if code != exitOK {
		return code
	}
	return c.run(ctx, a, given)
}

// open reads the settings, and returns all that is wrong with them and the jobs.
func (p *Program) open(c *command) (*app.App, error) {
	a, err := app.Open(app.Config{Work: p.Work, Store: p.Store, Console: p.console(), Now: p.Now, Replica: c.replica(), Serves: c.serves, Runs: c.runs})
	if p.process {
		slog.SetDefault(a.Scheduler.Logger) // jobs that use it end up where they should
	}
	if app.InFunctions() {
		functions.TellBegins(a.Scheduler.Jobs)
		if c.serves {
			limits, _ := functions.LimitsOf(a) // serve tells the error
			a.Scheduler.Grace = limits.Grace
		}
	}
	if p.exit != nil {
		a.Scheduler.Overrun = overrun{log: a.Scheduler.Logger, exit: p.exit}.end
	}
	return a, errors.Join(err, a.Scheduler.Validate())
}

// openOr is open for a command that has no use for mistakes. They are told, and
// are the code.
func (p *Program) openOr(c *command) (*app.App, int) {
	a, err := p.open(c)
	if err == nil {
		if p.process && (c.serves || c.runs) {
			surviveBrokenPipe()
		}
		a.Warn()
		return a, exitOK
	}
	a.Console.Complain(err)
	for _, text := range a.Strange { // perhaps the cause
		fmt.Fprintf(p.Stderr, "  %s\n", text)
	}
	return a, exitUsage
}

func (p *Program) console() app.Console {
	return app.Console{Name: p.Name, Stdout: p.Stdout, Stderr: p.Stderr, Terminal: p.terminal}
}

// filled returns a copy in which every field has a value.
func (p *Program) filled() *Program {
	q := *p
	if q.Name == "" {
		q.Name = programName(os.Args[0])
	}
	if q.Args == nil {
		q.Args = os.Args[1:]
	}
	if q.Stdout == nil {
		q.Stdout = os.Stdout
	}
	if q.Stderr == nil {
		q.Stderr = os.Stderr
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

// printed is the exit code of a command that has answered in JSON.
func printed(ok bool) int {
	if !ok {
		return exitFail
	}
	return exitOK
}
