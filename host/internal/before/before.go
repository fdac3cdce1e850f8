// Package before is what a program does once before its first job starts, such as a migration: by one
// replica of all, while the others wait.
package before

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/supervise"
)

// A Before is done once before the first job of a process starts. Its methods may be called on nil,
// which has nothing to do.
type Before struct {
	all    []*soloist.Once
	log    *slog.Logger
	begins func(context.Context)
	turn   chan struct{} // has room for one: the call that does what is to be done

	mu     sync.Mutex
	done   int       // how many of all
	since  time.Time // when the next one was begun or waited for; zero: not yet
	failed error     // why the next one is not done, as far as this replica knows
}

// A Config is what a program says of what is to be done before its jobs.
type Config struct {
	Given     []*soloist.Once
	Scheduler *soloist.Scheduler // with all its fields
	Log       *slog.Logger
	Lease     time.Duration         // of what has neither a lease nor a store of its own
	Version   string                // the key of what has none
	Begins    func(context.Context) // called when the work of a call of Run begins, with its context
}

// New binds what is given to the scheduler. The error joins all that is wrong with it. What the
// program gave is copied: it may be used again.
func New(c Config) (*Before, error) {
	if len(c.Given) == 0 {
		return nil, nil
	}
	b := &Before{log: c.Log, begins: c.Begins, turn: make(chan struct{}, 1)}
	var errs []error
	seen := map[string]bool{}
	for i, g := range c.Given {
		if g == nil {
			errs = append(errs, fmt.Errorf("Before %d of %d is nil: want a soloist.Once", i+1, len(c.Given)))
			continue
		}
		o := b.bind(c, g)
		if err := check(o); err != nil {
			errs = append(errs, fmt.Errorf("Before: %w", err))
		}
		if seen[words(o)] {
			errs = append(errs, fmt.Errorf("Before: once %.80q for %.80q is there twice: the second one would never be done", o.Name, o.Key))
		}
		seen[words(o)] = true
		b.all = append(b.all, o)
	}
	return b, errors.Join(errs...)
}

// bind returns a copy with all that the program gives it.
func (b *Before) bind(c Config, given *soloist.Once) *soloist.Once {
	o := &soloist.Once{Name: given.Name, Key: given.Key, Do: b.heard(given.Do), Retry: given.Retry, Store: given.Store, App: given.App,
		Lease: given.Lease, Replica: given.Replica, Logger: given.Logger, Overrun: given.Overrun}
	if o.Store == nil && o.Lease == 0 {
		o.Lease = c.Lease
	}
	if o.Key == "" {
		o.Key = c.Version
	}
	c.Scheduler.Bind(o)
	return o
}

// check returns what is wrong with what is bound.
func check(o *soloist.Once) error {
	if o.Key == "" {
		return fmt.Errorf("once %.80q: Key is empty, and this build has no version in its place: set Key, for example to a variable "+
			"that go build -ldflags \"-X main.version=v1\" sets, or build in a work tree of git", o.Name)
	}
	return o.Validate()
}

// errNoReturn is the failure of work that has ended its goroutine.
var errNoReturn = errors.New("the function did not return (runtime.Goexit)")

// heard reports a failure here to Waiting. A panic goes on to the run, which logs and records it.
func (b *Before) heard(do func(context.Context, *soloist.Run) error) func(context.Context, *soloist.Run) error {
	if do == nil {
		return nil // a mistake, which Validate reports
	}
	return func(ctx context.Context, run *soloist.Run) (err error) {
		failed := errNoReturn
		defer func() {
			p := recover()
			if p != nil {
				failed = fmt.Errorf("panic: %v", p)
			}
			b.note(failed)
			if p != nil {
				panic(p)
			}
		}()
		b.begins(ctx)
		err = do(ctx, run)
		if failed = err; supervise.Skips(err) {
			failed = nil
		}
		return err
	}
}

// Run returns nil once all is done, here or on another replica. One call at a time does something;
// the others wait for it. After an error a further call goes on with what is not done.
func (b *Before) Run(ctx context.Context) error {
	if b.next() == nil {
		return nil
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		what, _ := b.Waiting()
		return fmt.Errorf("no job is started before this is done: %s: %w", what, context.Cause(ctx))
	}
	defer func() { <-b.turn }()
	for o := b.next(); o != nil; o = b.next() {
		b.begin()
		if err := o.Run(ctx); err != nil {
			if ctx.Err() == nil { // else only this wait for it has ended
				b.note(err)
			}
			return fmt.Errorf("no job is started before this is done: %w", err)
		}
		b.end(o)
	}
	return nil
}

// next is what is to be done next, nil if all is done.
func (b *Before) next() *soloist.Once {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == len(b.all) {
		return nil
	}
	return b.all[b.done]
}

func (b *Before) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Now()
}

func (b *Before) end(o *soloist.Once) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.Info("done before the jobs start, here or on another replica", "once", o.Name, "key", o.Key, "waited", time.Since(b.since).Round(time.Millisecond))
	b.done, b.since, b.failed = b.done+1, time.Time{}, nil
}

func (b *Before) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = err
}

// Waiting says what the jobs wait for, empty if that is nothing, and why it has failed here last.
func (b *Before) Waiting() (what string, failed error) {
	o := b.next()
	if o == nil {
		return "", nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	what = words(o)
	if !b.since.IsZero() {
		what += ", for " + format.Roughly(time.Since(b.since))
	}
	return what, b.failed
}

// Names are what is done before the jobs, in order.
func (b *Before) Names() (names []string) {
	if b == nil {
		return nil
	}
	for _, o := range b.all {
		names = append(names, words(o))
	}
	return names
}

// words name what is done once.
func words(o *soloist.Once) string { return format.Line(o.Name + " for " + o.Key) }
