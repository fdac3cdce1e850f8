package proctest

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// A Fleet is the replicas of one program, each a process, and what they print.
type Fleet struct {
	Program string   // of those that are started from now on; empty: this one
	Env     []string // of all

	mu      sync.Mutex
	procs   map[string]*Process
	events  []Event
	awaited int // so many of the events
}

// Start starts a replica, in the place of one of that name that is gone.
func (f *Fleet) Start(name string, env ...string) error {
	f.note(Event{Replica: name, What: Begins, At: time.Now()})
	p, err := Command{
		Program: cmp.Or(f.Program, Self()), Env: slices.Concat(f.Env, env),
		Stdout: func(line string) { f.note(parse(name, line)) },
	}.Start()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.procs == nil {
		f.procs = map[string]*Process{}
	}
	f.procs[name] = p
	return nil
}

// Replica is the newest process of that name.
func (f *Fleet) Replica(name string) *Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.procs[name]
}

// Stop ends all replicas that are left, at the same time, as [Process.Stop] does.
func (f *Fleet) Stop(patience time.Duration) error {
	all := f.all()
	errs := make(chan error)
	for _, p := range all {
		go func() { errs <- p.Stop(patience) }()
	}
	var err error
	for range all {
		err = errors.Join(err, <-errs)
	}
	return err
}

// End kills the replicas that are left, and shows what was read last if the test
// has failed.
func (f *Fleet) End(t testing.TB) {
	f.Close()
	if events := f.Events(); t.Failed() {
		for _, e := range events[max(0, len(events)-40):] {
			t.Log(e.At.Format("15:04:05.000"), e.Replica, e.What, e.Token, e.Text)
		}
	}
}

// Close kills the replicas that are left.
func (f *Fleet) Close() {
	for _, p := range f.all() {
		p.Kill()
	}
}

// all returns the processes that are not gone.
func (f *Fleet) all() (left []*Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.procs {
		select {
		case <-p.gone:
		default:
			left = append(left, p)
		}
	}
	return left
}
