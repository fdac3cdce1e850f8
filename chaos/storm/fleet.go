//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/chaos/again"
	"github.com/soloist-go/soloist/chaos/line"
)

const app = "storm"

const (
	lease = 15 * time.Second // of all work, the shortest that the service takes
	grace = 5 * time.Second

	// stops is how long a replica may take to stop: a run that blocks has to be
	// found out first, and an outcome is written as long as the lease lasts.
	stops = grace + silence + 2*lease
)

// A fleet is the replicas of a program, and the platform that starts them again.
type fleet struct {
	*scribe
	env      []string
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

	mu      sync.Mutex
	down    bool      // not to be started again yet
	cmd     *exec.Cmd // nil: there is no process
	version string
	url     string // of its HTTP, once it listens
	exit    Exit   // what is known of it so far
}

func newFleet(n int, dir string, s *scribe, v *service, sink string) (*fleet, error) {
	f := &fleet{scribe: s, version: "1"}
	f.env = []string{"SOLOIST_APP=" + app, "SOLOIST_LEASE=" + lease.String(), "SOLOIST_GRACE=" + grace.String(),
		"SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_LOG_FORMAT=json", sinkEnv + "=" + sink}
	for i := range n {
		name := fmt.Sprintf("replica-%d", i+1)
		l, err := line.New(name, v.of(name))
		if err != nil {
			f.close()
			return nil, err
		}
		log, err := os.Create(filepath.Join(dir, name+".log"))
		if err != nil {
			l.Close()
			f.close()
			return nil, err
		}
		f.replicas = append(f.replicas, &node{fleet: f, Line: l, name: name, log: log})
	}
	return f, nil
}

func (f *fleet) close() {
	for _, n := range f.replicas {
		n.Close()
		n.log.Close()
	}
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
				for pause(ctx, 300*time.Millisecond); n.isDown() && ctx.Err() == nil; {
					pause(ctx, 100*time.Millisecond)
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
	n.fleet.mu.Lock()
	version := n.fleet.version
	n.fleet.mu.Unlock()
	cmd, err := again.Command(slices.Concat(n.env, []string{replicaEnv + "=" + n.name, versionEnv + "=" + version,
		"CONTAINER_APP_REPLICA_NAME=" + n.name, "SOLOIST_STORAGE=" + n.ConnectionString()})...)
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = n.log
	if err := cmd.Start(); err != nil {
		return err
	}
	n.mu.Lock()
	n.cmd, n.version, n.url, n.exit = cmd, version, "", Exit{Replica: n.name, Start: time.Now()}
	n.mu.Unlock()
	kill := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	n.read(out)
	cmd.Wait() // the code says it all
	if !kill() {
		return nil // the storm is over
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cmd, n.exit.At, n.exit.Code, n.exit.Listened = nil, time.Now(), cmd.ProcessState.ExitCode(), n.url != ""
	n.scribe.exit(n.exit)
	return nil
}

// read keeps the log, and finds out where the replica listens.
func (n *node) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20) // of a run that stalls, all goroutines are told
	for lines.Scan() {
		fmt.Fprintf(n.log, "%s\n", lines.Bytes())
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			n.mu.Lock()
			n.url = line.URL
			n.mu.Unlock()
		}
	}
	io.Copy(n.log, out)
}

// signal sends a signal to the process, if there is one. Asked, when set, is
// why it will end.
func (n *node) signal(s syscall.Signal, asked string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return false
	}
	if asked != "" {
		n.exit.Asked = asked
	}
	if s == syscall.SIGCONT {
		n.exit.Thawed = time.Now()
	}
	return n.cmd.Process.Signal(s) == nil
}

// stop ends the process as a platform does that has patience, and returns when
// it is gone. It returns false if there was none.
func (n *node) stop() bool {
	n.mu.Lock()
	cmd := n.cmd
	n.mu.Unlock()
	if cmd == nil || !n.signal(syscall.SIGTERM, sigterm) {
		return false
	}
	for late := time.Now().Add(stops); n.runs(cmd); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			n.signal(syscall.SIGKILL, tooLong)
			late = late.Add(time.Hour)
		}
	}
	return true
}

func (n *node) runs(cmd *exec.Cmd) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd == cmd
}

func (n *node) isDown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}

func (n *node) setDown(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// has reports whether the process is of the version.
func (n *node) has(version string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.version == version
}

// owns names what a fault of the node takes.
func (n *node) owns(what string) []string { return []string{n.name + " " + what} }

// unwell is what the replica's own probes say, nil if all is well.
func (n *node) unwell() error {
	n.mu.Lock()
	url, up := n.url, n.cmd != nil
	n.mu.Unlock()
	if !up || url == "" {
		return fmt.Errorf("%s is not up", n.name)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		resp, err := client.Get(url + path)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		var body struct{ Status string }
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || json.Unmarshal(b, &body) != nil || body.Status != want {
			return fmt.Errorf("%s: %s answers %s: %s", n.name, path, resp.Status, b)
		}
	}
	return nil
}
