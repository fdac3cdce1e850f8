//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/proctest"
)

const (
	warmUp = 4 * time.Second  // from a fleet's start to its first tick that counts: a new entry is not due in its first seconds
	drain  = 2 * time.Second  // from the last tick to the end of the fleet: a run may be late
	stops  = 20 * time.Second // how long a replica may take to stop
)

// A fleet is the replicas of one peer.
type fleet struct {
	spec
	proctest.Fleet
	settings replica.Settings
	done     []proctest.Event // what the bench has done to replicas
}

// open makes a fleet without replicas.
func open(ctx context.Context, s *services, space string, of spec) (*fleet, error) {
	program, address, err := s.of(ctx, of)
	if err == nil {
		err = s.space(ctx, address, space)
	}
	return &fleet{spec: of, Fleet: proctest.Fleet{Program: program}, settings: replica.Settings{
		Service: address, Space: space, Ahead: strings.HasSuffix(of.peer, "ahead"), Jobs: of.jobs, Lease: of.lease, Leads: of.lease > 0, History: of.growth}}, err
}

// names returns the names of the replicas.
func (f *fleet) names() (all []string) {
	for n := range f.size {
		all = append(all, fmt.Sprint("r", n))
	}
	return all
}

// start starts a replica, or replaces a replica that is gone. The clocks of the second and the third are ahead and behind.
func (f *fleet) start(name string) error {
	s := f.settings
	s.Name = name
	s.Skew = map[string]time.Duration{"r1": f.skew, "r2": -f.skew}[name]
	return f.Start(name, s.Env(), "BENCH_SKEW="+s.Skew.String())
}

// What the bench does to replicas.
var signals = map[string]syscall.Signal{"kill": syscall.SIGKILL, "term": syscall.SIGTERM, "stop": syscall.SIGSTOP, "cont": syscall.SIGCONT}

// signal sends a signal and notes it.
func (f *fleet) signal(what, name string) error {
	f.done = append(f.done, proctest.Event{What: what, At: time.Now(), Replica: name})
	return f.Replica(name).Signal(signals[what])
}

// check returns an error if a replica has ended that should not.
func (f *fleet) check() (err error) {
	for _, name := range f.names() {
		if p := f.Replica(name); p.GoneWithin(0) {
			err = errors.Join(err, fmt.Errorf("%s of %s in %s ended with code %d", name, f.peer, f.scenario, p.Code()))
		}
	}
	return err
}

// until waits for a time.
func until(ctx context.Context, t time.Time) error { return proctest.Pause(ctx, time.Until(t)) }
