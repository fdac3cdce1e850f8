//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/proof/chaos/line"
)

const app = "storm"

const (
	shortest = 15 * time.Second // the lease that the service takes
	grace    = 5 * time.Second

	// stops is how long a replica may take to stop: a run that blocks has to be
	// found out first, and an outcome is written as long as the lease of the service lasts.
	stops = grace + silence + 2*shortest
)

// A fleet is the replicas of a program, and the platform that starts them again.
type fleet struct {
	*scribe
	env      []string
	program  string
	replicas []*node

	mu      sync.Mutex
	version string // what is started from now on
}

// A node is where one replica runs, one process after the other, and its line.
type node struct {
	*fleet
	*line.Line
	name string
	log  *os.File

	storage string      // SOLOIST_STORAGE of the replica
	down    atomic.Bool // not to be started again yet

	ofProcess, ofLine sync.Mutex // held while a fault goes on

	mu      sync.Mutex
	process *proctest.Process // nil: there is none
	version string
	url     string // of its HTTP, once it listens
	exit    Exit   // what is known of it so far
}

// newFleet returns what there is to close after an error, too.
func newFleet(o options, s *scribe, v service, sink string) (*fleet, error) {
	f := &fleet{scribe: s, version: "1", program: proctest.Self()}
	if edits := mistakes[o.mistake].edits; edits != nil {
		edited, err := proctest.Edited(edits...)
		if err == nil {
			f.program, err = proctest.BuildOver(o.dir, "proof/chaos/storm", false, edited)
		}
		if err != nil {
			return f, err
		}
	}
	f.env = []string{"SOLOIST_APP=" + app, "SOLOIST_LEASE=" + o.lease.String(), "SOLOIST_GRACE=" + grace.String(),
		"SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_LOG_FORMAT=json", sinkEnv + "=" + sink}
	for i := range o.replicas {
		name := fmt.Sprintf("replica-%d", i+1)
		l, err := v.line(name)
		if err != nil {
			return f, err
		}
		one := &node{fleet: f, Line: l, name: name, storage: v.storage(name, l.Address())}
		f.replicas = append(f.replicas, one)
		if one.log, err = os.Create(filepath.Join(o.dir, name+".log")); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *fleet) close() {
	for _, n := range f.replicas {
		n.Close()
		n.log.Close()
	}
}

// now is the version that is started; next changes it.
func (f *fleet) now() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

func (f *fleet) next() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = map[string]string{"1": "2", "2": "1"}[f.version]
	return f.version
}

// keep has every node run a replica until ctx ends, and then no longer.
func (f *fleet) keep(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make(chan error, len(f.replicas))
	for _, n := range f.replicas {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := n.live(ctx); err != nil {
					errs <- err
					return
				}
				for proctest.Pause(ctx, 300*time.Millisecond); n.down.Load() && ctx.Err() == nil; {
					proctest.Pause(ctx, 100*time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// live is the life of one process.
func (n *node) live(ctx context.Context) error {
	version := n.now()
	n.mu.Lock()
	n.version, n.url, n.exit = version, "", Exit{Replica: n.name, Start: time.Now()}
	n.mu.Unlock()
	p, err := proctest.Command{
		Program: n.program,
		Env: slices.Concat(n.env, []string{proctest.As(n.name), versionEnv + "=" + version,
			"CONTAINER_APP_REPLICA_NAME=" + n.name, "SOLOIST_STORAGE=" + n.storage}),
		Stdout: n.read, Stderr: n.read,
	}.Start()
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.process = p
	n.mu.Unlock()
	kill := context.AfterFunc(ctx, p.Kill)
	<-p.Gone()
	if !kill() {
		return nil // the storm is over
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process, n.exit.At, n.exit.Code, n.exit.Listened = nil, time.Now(), p.Code(), n.url != ""
	n.scribe.exit(n.exit)
	return nil
}

// read keeps the log, and finds out where the replica listens.
func (n *node) read(line string) {
	fmt.Fprintln(n.log, line)
	var log struct{ Msg, URL string }
	if json.Unmarshal([]byte(line), &log) == nil && log.Msg == "listening" {
		n.mu.Lock()
		n.url = log.URL
		n.mu.Unlock()
	}
}

// signal sends a signal to the process, if there is one. Asked, when set, is
// why it will end.
func (n *node) signal(s syscall.Signal, asked string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return false
	}
	if asked != "" {
		if n.exit.Asked = asked; n.exit.AskedAt.IsZero() {
			n.exit.AskedAt = time.Now()
		}
	}
	if s == syscall.SIGCONT {
		n.exit.Thawed = time.Now()
	}
	return n.process.Signal(s) == nil
}

// stop ends the process as a platform does that waits long enough, and returns when it is
// gone. It returns false if there was none.
func (n *node) stop() bool {
	n.mu.Lock()
	p := n.process
	n.mu.Unlock()
	if p == nil || !n.signal(syscall.SIGTERM, sigterm) {
		return false
	}
	if !p.GoneWithin(stops) {
		n.signal(syscall.SIGKILL, tooLong)
		<-p.Gone()
	}
	return true
}

// alive are the processes that have not ended.
func (f *fleet) alive() (all []Exit) {
	for _, n := range f.replicas {
		n.mu.Lock()
		if e := n.exit; n.process != nil {
			e.Listened = n.url != ""
			all = append(all, e)
		}
		n.mu.Unlock()
	}
	return all
}

// has reports whether the process is of the version.
func (n *node) has(version string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.version == version
}

// unwell is what the replica's own probes say, nil if all is well.
func (n *node) unwell() error {
	n.mu.Lock()
	url, up := n.url, n.process != nil
	n.mu.Unlock()
	if !up || url == "" {
		return fmt.Errorf("%s is not up", n.name)
	}
	if err := proctest.Well(url); err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	return nil
}
