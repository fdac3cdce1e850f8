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
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/soloist-go/soloist"
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
		fmt.Fprintf(p.Stderr, "%s help lists the commands\n", p.Name)
		return exitUsage
	}
	return c.run(ctx, p)
}
