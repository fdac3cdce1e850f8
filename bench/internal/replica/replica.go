// Package replica is what the replicas of all peers share: what they are told, one log of the runs of their jobs, and
// their end. It imports nothing of the peers, so that each program is as large as it would be
// by itself.
package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// variable carries the settings.
const variable = "BENCH_REPLICA"

// Settings are what a replica is told.
type Settings struct {
	Name    string
	Log     string        // the file for its runs
	Skew    time.Duration // by how much its wall clock is ahead
	Service string        // where it meets the others: a connection string, an address or a URL
	Space   string        // what separates its fleet from others at the service
	Ahead   bool          // claim ahead
	Lease   time.Duration // of a leader
	Leads   bool          // the work is that of one leader, in place of jobs; see Lead
	Jobs    []Job
}

// Env is the setting under which a program is this replica.
func (s Settings) Env() string {
	b, _ := json.Marshal(s) // of texts and numbers
	return variable + "=" + string(b)
}

// Now is the wall clock of the replica.
func (s Settings) Now() time.Time { return time.Now().Add(s.Skew) }

// A Worker does the work of the jobs and logs it.
type Worker struct {
	Settings
	log *Log
}

// Do is the run of a job at a tick.
func (w *Worker) Do(ctx context.Context, j Job, tick time.Time) error {
	line := Line{What: Start, Wall: time.Now(), Tick: tick, Job: j.Name, Replica: w.Name, Pid: os.Getpid()}
	err := w.log.Write(line)
	if j.Work > 0 {
		t := time.NewTimer(j.Work)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			err = errors.Join(err, context.Cause(ctx))
		}
	}
	line.What, line.Wall = End, time.Now()
	return errors.Join(err, w.log.Write(line))
}

// Lead is what a leader does: it logs when it begins to lead, and when it ends.
func (w *Worker) Lead(ctx context.Context) error {
	line := Line{What: Start, Wall: time.Now(), Tick: time.Unix(0, 0), Job: w.Jobs[0].Name, Replica: w.Name, Pid: os.Getpid()}
	err := w.log.Write(line)
	<-ctx.Done()
	line.What, line.Wall = End, time.Now()
	return errors.Join(err, w.log.Write(line))
}

// Main runs a replica until SIGTERM, or until the bench has ended.
func Main(serve func(ctx context.Context, w *Worker) error) {
	if err := run(serve); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(serve func(ctx context.Context, w *Worker) error) error {
	go func() {
		io.Copy(io.Discard, os.Stdin) // which the bench holds open while it lives
		os.Exit(1)
	}()
	var w Worker
	if err := json.Unmarshal([]byte(os.Getenv(variable)), &w.Settings); err != nil {
		return fmt.Errorf("%s: want the settings of a replica: this program is started by the bench: go run . in bench: %w", variable, err)
	}
	log, err := Open(w.Log)
	if err != nil {
		return err
	}
	w.log = log
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return errors.Join(serve(ctx, &w), log.Close())
}
