//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/soloist-go/soloist/chaos/again"
)

// replicas is how many there are between two rounds.
const replicas = 3

// A fleet is the replicas of one program, each a process.
type fleet struct {
	lease   time.Duration
	verbose bool
	env     []string
	procs   map[string]*proc
	started int
	events  chan event
	leader  event // its start
}

// A proc is the process of a replica.
type proc struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it is gone
}

func newFleet(storage, app string, lease time.Duration, verbose bool) (*fleet, error) {
	f := &fleet{lease: lease, verbose: verbose, procs: map[string]*proc{}, events: make(chan event, 100)}
	f.env = []string{"SOLOIST_STORAGE=" + storage, "SOLOIST_APP=" + app, "SOLOIST_LEASE=" + lease.String(), "SOLOIST_ADDR=127.0.0.1:0"}
	for range replicas {
		if err := f.start(); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// start starts one more replica.
func (f *fleet) start() error {
	f.started++
	name := fmt.Sprintf("replica-%d", f.started)
	cmd, err := again.Command(slices.Concat(f.env, []string{replicaEnv + "=" + name})...)
	if err != nil {
		return err
	}
	if f.verbose {
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		r.Close()
		return err
	}
	p := &proc{cmd, make(chan struct{})}
	f.procs[name] = p
	go f.read(p, r)
	return nil
}

// read passes events on until the process is gone.
func (f *fleet) read(p *proc, r *os.File) {
	defer close(p.done)
	defer p.cmd.Wait()
	defer r.Close()
	for events := json.NewDecoder(r); ; {
		var e event
		if events.Decode(&e) != nil {
			return
		}
		f.events <- e
	}
}

// end sends a signal that a replica does not outlive.
func (f *fleet) end(name string, s os.Signal) error {
	p := f.procs[name]
	delete(f.procs, name)
	return p.cmd.Process.Signal(s)
}

// close kills those that are left.
func (f *fleet) close() {
	for _, p := range f.procs {
		p.cmd.Process.Kill()
		<-p.done
	}
}

// patience is far longer than anything takes that is not broken.
func (f *fleet) patience() time.Duration { return 3*f.lease + 30*time.Second }

// await returns the next event.
func (f *fleet) await(what string) (event, error) {
	select {
	case e := <-f.events:
		f.note(e)
		return e, nil
	case <-time.After(f.patience()):
		return event{}, fmt.Errorf("waiting for %s: nothing within %s", what, f.patience())
	}
}

// quiet waits. A leader that changes meanwhile does so without a reason.
func (f *fleet) quiet(d time.Duration) error {
	select {
	case e := <-f.events:
		f.note(e)
		return fmt.Errorf("with nothing wrong: %s of %s", e.What, e.Replica)
	case <-time.After(d):
		return nil
	}
}

func (f *fleet) note(e event) {
	if f.verbose {
		fmt.Fprintf(os.Stderr, "%s %s %s token %d\n", e.At.Format("15:04:05.000"), e.Replica, e.What, e.Token)
	}
}
