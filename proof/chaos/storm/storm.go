//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/proctest"
)

// Options say how a storm is to be.
type options struct {
	store    string // azurite or postgres
	replicas int
	length   time.Duration // of the faults
	seed     uint64
	lease    time.Duration // of all work
	dir      string        // for logs, events and the service's data
	mistake  string        // of mistakes; empty: none
}

// A storm is a fleet, its service, and the faults that they suffer.
type storm struct {
	*fleet
	service
	*scribe
	faults sync.WaitGroup

	ofService, ofProgram sync.Mutex
	ofProcesses          atomic.Int64 // faults of processes that go on

	mu  sync.Mutex
	err error // of the storm itself
}

// run has a storm pass over a fleet and returns what happened.
func run(ctx context.Context, o options, versions map[string]string) (story Story, err error) {
	events, err := os.Create(filepath.Join(o.dir, "events.jsonl"))
	if err != nil {
		return story, err
	}
	defer events.Close()
	s := &storm{scribe: newScribe(events)}
	if s.service, err = services[o.store](ctx, o, s.scribe); err != nil {
		return story, err
	}
	defer s.service.close()
	sink, err := proctest.NewSink(s.effect)
	if err != nil {
		return story, err
	}
	defer sink.Close()
	s.fleet, err = newFleet(o, s.scribe, s.service, sink.URL)
	defer s.fleet.close()
	if err != nil {
		return story, err
	}
	return s.pass(ctx, o, versions)
}

// pass is the storm, and the calm after it.
func (s *storm) pass(ctx context.Context, o options, versions map[string]string) (Story, error) {
	alive, end := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() { kept <- s.keep(alive) }()
	faults, over := context.WithTimeout(ctx, o.length)
	defer over()
	err := s.inject(faults, o.seed, kindsUnder(o))
	var unwell []string
	var reasons []Reason
	if err == nil && ctx.Err() == nil {
		settled := s.settle(ctx)
		unwell = s.calm(ctx, time.Now())
		reasons, err = s.explain(ctx, versions)
		err = errors.Join(settled, err, s.shut(), s.listen(), s.compare())
	}
	story := s.scribe.end(unwell, s.alive(), reasons)
	end()
	return story, errors.Join(err, ctx.Err(), <-kept)
}

// settle completes a deploy that was cut short.
func (s *storm) settle(ctx context.Context) error {
	var all sync.WaitGroup
	for _, n := range s.replicas {
		if !n.has(s.now()) {
			all.Go(func() { n.stop() })
		}
	}
	all.Wait()
	return ctx.Err()
}

// patience is how long after the last fault each tick that was due has its
// outcome: a lease that is still held, the rarest look at a run, and a follower's
// poll.
const patience = shortest + time.Minute + shortest/3

// calm waits until all that was due has its outcome, somebody leads and each
// replica is well, and returns what is not so in time.
func (s *storm) calm(ctx context.Context, healed time.Time) (unwell []string) {
	for late := healed.Add(patience); ; {
		unwell = nil
		if err := s.listen(); err != nil {
			return []string{err.Error()}
		}
		for _, d := range definitions(s.now()) {
			if due, through := healed.Truncate(d.Every), s.record(d.Name).Watermark; d.Every > 0 && through.Before(due) {
				unwell = append(unwell, fmt.Sprintf("%s: the tick %s has no outcome %s after the last fault: the watermark is %s",
					d.Name, clock(due), patience, clock(through)))
			}
		}
		if s.heard(leader).Got.Before(healed) {
			unwell = append(unwell, fmt.Sprintf("nobody leads %s after the last fault", patience))
		}
		for _, n := range s.replicas {
			if err := n.unwell(); err != nil {
				unwell = append(unwell, err.Error())
			}
		}
		if len(unwell) == 0 || time.Now().After(late) || proctest.Pause(ctx, 500*time.Millisecond) != nil {
			return unwell
		}
	}
}

// compare holds the records of the service, which is shut, against the last
// writes that were seen of it: else what follows would not be about Soloist.
func (s *storm) compare() error {
	store, err := s.store()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	at, err := desk.Of(&soloist.Scheduler{App: app, Store: store, Jobs: of[soloist.Job]("2"), Singletons: of[soloist.Singleton]("2")})
	if err != nil {
		return err
	}
	for _, st := range at.Statuses(ctx) {
		if err = errors.Join(err, st.Err); st.Err == nil && st.Record.Writer != s.record(st.Name).Writer {
			err = errors.Join(err, fmt.Errorf("the service's record of %s is not what was written last: this storm proves nothing", st.Name))
		}
	}
	return err
}

// take claims what a fault is to happen to: nothing else happens to it meanwhile.
func take(all []*sync.Mutex) bool {
	for i, one := range all {
		if !one.TryLock() {
			leave(all[:i])
			return false
		}
	}
	return true
}

func leave(all []*sync.Mutex) {
	for _, one := range all {
		one.Unlock()
	}
}

// fail notes what went wrong with the storm itself.
func (s *storm) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

func (s *storm) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
