// Package replica is what the replicas of all peers share: their settings, the lines that they print about the runs of their
// jobs, and their end. It imports nothing of the peers, so that each program is as large as it would be by itself.
package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// variable carries the settings.
const variable = "BENCH_REPLICA"

// Settings configure a replica.
type Settings struct {
	Skew    time.Duration // by how much the wall clock of its program is ahead
	Service string        // where it meets the others: a connection string, an address or a URL
	Space   string        // what separates its fleet from others at the service
	Ahead   bool          // claim ahead
	Lease   time.Duration // of a leader
	Leads   bool          // one leader does the work, in place of jobs; see Lead
	Jobs    []Job
	History bool // keep a log of outcomes, if the peer can
	Name    string
}

// Env is the setting under which a program is this replica.
func (s Settings) Env() string {
	b, _ := json.Marshal(s) // of texts and numbers
	return variable + "=" + string(b)
}

// What replicas print.
const (
	Start = "start"
	End   = "end"
	Lead  = "lead" // it enqueues the ticks of the first job, which others may run
)

// say prints a line about a run, by one call of the system. The bench reads it as an event of proctest.
func (s Settings) say(what, job string, tick time.Time) {
	at := time.Now().Add(-s.Skew)
	b, _ := json.Marshal(map[string]any{"What": what, "Job": job, "Tick": tick, "At": at}) // of texts and times
	os.Stdout.Write(append(b, '\n'))
}

// Do is the run of a job at a tick.
func (s Settings) Do(ctx context.Context, j Job, tick time.Time) error {
	s.say(Start, j.Name, tick)
	defer s.say(End, j.Name, tick)
	if j.Work == 0 {
		return nil
	}
	return Wait(ctx, j.Work)
}

// Wait waits, and returns an error if ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Enqueues says that this replica enqueues the ticks of a job.
func (s Settings) Enqueues(j Job) { s.say(Lead, j.Name, time.Time{}) }

// Lead is what a leader does: it says when it begins to lead, and when it ends.
func (s Settings) Lead(ctx context.Context) {
	s.say(Start, s.Jobs[0].Name, time.Time{})
	<-ctx.Done()
	s.say(End, s.Jobs[0].Name, time.Time{})
}

// Main runs a replica until SIGTERM, or until the bench has ended.
func Main(serve func(ctx context.Context, s Settings) error) {
	go func() {
		io.Copy(io.Discard, os.Stdin) // which the bench holds open while it lives
		os.Exit(1)
	}()
	var s Settings
	err := json.Unmarshal([]byte(os.Getenv(variable)), &s)
	if err != nil {
		err = fmt.Errorf("%s: want the settings of a replica: this program is started by the bench: go run . in bench: %w", variable, err)
	} else {
		ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer cancel()
		err = serve(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
