//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/zero/judge"
	"github.com/soloist-go/soloist/zero/keda"
	"github.com/soloist-go/soloist/zero/platform"
)

// A recorder starts replicas and keeps what happens.
type recorder struct {
	command proctest.Command
	scaler  *keda.Scaler
	log     *os.File

	mu       sync.Mutex
	story    judge.Story
	failures []string
}

// start starts a replica.
func (r *recorder) start() (platform.Replica, error) {
	r.mu.Lock()
	n := len(r.story.Replicas)
	r.story.Replicas = append(r.story.Replicas, judge.Replica{Begun: time.Now()})
	r.mu.Unlock()
	c := r.command
	name := fmt.Sprintf("replica-%d", n+1)
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], "CONTAINER_APP_REPLICA_NAME="+name)
	c.Stdout = func(line string) { r.line(n, name, line) }
	c.Stderr = c.Stdout
	p, err := c.Start()
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Gone()
		r.gone(n, name, p.Code())
	}()
	return replica{p}, nil
}

// A replica is judged by its exit code alone, also after it was stopped.
type replica struct{ *proctest.Process }

func (r replica) Stop(patience time.Duration) error {
	if err := r.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if !r.GoneWithin(patience) {
		r.Kill()
	}
	return nil
}

// line keeps what a replica tells.
func (r *recorder) line(n int, name, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.log, time.Now().Format("15:04:05.000"), name, line)
	var e proctest.Event
	if json.Unmarshal([]byte(line), &e) != nil {
		return // of its log
	}
	switch e.What {
	case "up":
		r.story.Replicas[n].Up = e.At
	case "start":
		r.story.Starts = append(r.story.Starts, judge.Start{Job: e.Job, Tick: e.Tick, At: e.At})
	}
}

func (r *recorder) gone(n int, name string, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.log, time.Now().Format("15:04:05.000"), name, "ends with code", code)
	one := &r.story.Replicas[n]
	one.Gone = time.Now()
	if code != 0 && !(code == -1 && one.Gone.Sub(one.Begun) < settle) { // SIGTERM ends a process that does not handle it yet
		r.failures = append(r.failures, fmt.Sprintf("%s ended with code %d", name, code))
	}
}

// tell keeps what the platform does.
func (r *recorder) tell(e platform.Event) {
	var since time.Time
	if e.What == platform.Woken {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		since, _ = r.scaler.Visible(ctx) // an alarm that cannot be read is none
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.log, e.At.Format("15:04:05.000"), "platform", e.What, e.Wanted, e.Err)
	if e.What == platform.Woken {
		r.story.Wakes = append(r.story.Wakes, judge.Wake{Visible: since, Seen: e.At})
	}
}
