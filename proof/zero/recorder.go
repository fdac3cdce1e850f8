//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/proof/zero/judge"
	"github.com/soloist-go/soloist/proof/zero/keda"
	"github.com/soloist-go/soloist/proof/zero/platform"
)

// A recorder starts replicas and keeps what happens.
type recorder struct {
	proctest.Fleet
	scaler *keda.Scaler

	mu       sync.Mutex
	started  int
	gone     map[string]time.Time
	wakes    []judge.Wake
	failures []string
}

// start starts a replica.
func (r *recorder) start() (platform.Replica, error) {
	r.mu.Lock()
	r.started++
	name := fmt.Sprintf("replica-%d", r.started)
	r.mu.Unlock()
	begun := time.Now()
	if err := r.Start(name, "CONTAINER_APP_REPLICA_NAME="+name); err != nil {
		return nil, err
	}
	p := r.Replica(name)
	go func() {
		<-p.Gone()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gone[name] = time.Now()
		if code := p.Code(); code != 0 && !(code == -1 && time.Since(begun) < settle) { // SIGTERM ends a process that does not handle it yet
			r.failures = append(r.failures, fmt.Sprintf("%s ended with code %d", name, code))
		}
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

// tell keeps what the platform does.
func (r *recorder) tell(e platform.Event) {
	switch e.What {
	case platform.Failed:
		fmt.Fprintln(os.Stderr, "platform:", e.Err)
	case platform.Woken:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		since, _ := r.scaler.Visible(ctx) // an alarm that cannot be read is none
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wakes = append(r.wakes, judge.Wake{Visible: since, Seen: e.At})
	}
}

// story makes of what happened between two times what is judged.
func (r *recorder) story(o options, from, to time.Time) judge.Story {
	r.mu.Lock() // a replica may be ending
	defer r.mu.Unlock()
	s := judge.Story{From: from, To: to, Polling: o.each(polling), Jobs: o.jobs(), Wakes: r.wakes}
	number := map[string]int{}
	for _, e := range r.Events() {
		switch e.What {
		case proctest.Begins:
			number[e.Replica] = len(s.Replicas)
			s.Replicas = append(s.Replicas, judge.Replica{Begun: e.At, Gone: r.gone[e.Replica]})
		case "up":
			s.Replicas[number[e.Replica]].Up = e.At
		case "start":
			s.Starts = append(s.Starts, judge.Start{Job: e.Job, Tick: e.Tick, At: e.At})
		}
	}
	return s
}
