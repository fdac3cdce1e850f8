//go:build unix

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// replicas is how many there are between two rounds.
const replicas = 3

type event = proctest.Event

// A fleet is the replicas of one program, each a process.
type fleet struct {
	proctest.Fleet
	lease   time.Duration
	started int
	leader  event // its start
}

func newFleet(storage proctest.Storage, app string, lease time.Duration, verbose bool) (*fleet, error) {
	f := &fleet{lease: lease}
	f.Env = append(storage.Env(), "SOLOIST_APP="+app, "SOLOIST_LEASE="+lease.String(), "SOLOIST_ADDR=127.0.0.1:0")
	if verbose {
		f.Each = func(e event) {
			fmt.Fprintf(os.Stderr, "%s %s %s token %d %s\n", e.At.Format("15:04:05.000"), e.Replica, e.What, e.Token, e.Text)
		}
	}
	for range replicas {
		if err := f.start(); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// start starts one more replica.
func (f *fleet) start() error {
	f.started++
	name := fmt.Sprintf("replica-%d", f.started)
	return f.Start(name, proctest.As(name), "CONTAINER_APP_REPLICA_NAME="+name)
}

// await returns the next start or end of a leader.
func (f *fleet) await(what string) (event, error) {
	return f.Await(what, 3*f.lease+30*time.Second, ofLeader) // far longer than anything takes that is not broken
}

func ofLeader(e event) bool { return e.What == "start" || e.What == "end" }

// quiet waits. A leader that changes meanwhile does so without a reason.
func (f *fleet) quiet(d time.Duration) error {
	if e, err := f.Await("a change of the leader", d, ofLeader); err == nil {
		return fmt.Errorf("with nothing wrong: %s of %s", e.What, e.Replica)
	}
	return nil
}
