//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/proctest"
)

const (
	warmUp = 4 * time.Second  // from the start of a fleet to its first tick that counts, at least: a new entry owes no tick of its first seconds
	drain  = 2 * time.Second  // from its last one to its end: a run may be late
	stops  = 20 * time.Second // how long a replica may take to stop
)

// A fleet is the replicas of one peer.
type fleet struct {
	spec
	program  string
	settings replica.Settings
	log      *replica.Log
	replicas map[string]*proctest.Process

	mu     sync.Mutex
	stderr []string
}

// open makes a fleet without replicas.
func open(ctx context.Context, s *services, dir, space string, of spec) (*fleet, error) {
	program, address, err := s.of(ctx, of.peer)
	if err != nil {
		return nil, err
	}
	f := &fleet{spec: of, program: program, replicas: map[string]*proctest.Process{}}
	f.settings = replica.Settings{Log: filepath.Join(dir, space+".log"), Service: address, Space: space, Ahead: of.peer == "ahead", Jobs: of.jobs,
		Lease: of.lease, Leads: of.lease > 0}
	f.log, err = replica.Open(f.settings.Log)
	return f, err
}

// names are those of the replicas.
func (f *fleet) names() (all []string) {
	for n := range f.size {
		all = append(all, fmt.Sprint("r", n))
	}
	return all
}

// start starts a replica, in the place of one that is gone. The clocks of the second and the third
// are ahead and behind.
func (f *fleet) start(name string) error {
	s := f.settings
	s.Name = name
	s.Skew = map[string]time.Duration{"r1": f.skew, "r2": -f.skew}[name]
	p, err := proctest.Command{Program: f.program, Env: []string{s.Env()}, Stderr: f.hear}.Start()
	if err == nil {
		f.replicas[name] = p
	}
	return err
}

// hear keeps what replicas say on standard error.
func (f *fleet) hear(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stderr = append(f.stderr, line)
}

// said is the end of that.
func (f *fleet) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.stderr[max(0, len(f.stderr)-5):], "\n")
}

// note logs a fault.
func (f *fleet) note(what, name string) error {
	return f.log.Write(replica.Line{What: what, Wall: time.Now(), Tick: time.Unix(0, 0), Job: "-", Replica: name, Pid: f.replicas[name].Pid()})
}

// signal sends a signal and notes it.
func (f *fleet) signal(what, name string) error {
	signals := map[string]syscall.Signal{replica.Kill: syscall.SIGKILL, replica.Term: syscall.SIGTERM, replica.Stop: syscall.SIGSTOP, replica.Cont: syscall.SIGCONT}
	return errors.Join(f.note(what, name), f.replicas[name].Signal(signals[what]))
}

// check returns an error if a replica has ended that should not.
func (f *fleet) check() error {
	for name, p := range f.replicas {
		select {
		case <-p.Gone():
			return fmt.Errorf("%s of %s in %s ended with code %d:\n%s", name, f.peer, f.scenario, p.Code(), f.said())
		default:
		}
	}
	return nil
}

// stop stops all replicas at the same time.
func (f *fleet) stop() {
	var all sync.WaitGroup
	for _, p := range f.replicas {
		all.Go(func() { _ = p.Stop(stops) }) // one that does not stop is killed
	}
	all.Wait()
	f.log.Close()
}

// until waits for a time.
func until(ctx context.Context, t time.Time) error { return proctest.Pause(ctx, time.Until(t)) }
