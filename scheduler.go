package soloist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/spread"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/internal/ticks"
	"github.com/soloist-go/soloist/store"
)

// A Scheduler does the work of a program on one replica. Every replica has its own, over the same
// store. The first call of a method reads the fields; later changes have no effect.
type Scheduler struct {
	Jobs       []Job
	Singletons []Singleton

	// Groups are how many runs of each [Job.Group] take place at a time: 1 to 100, by the name of the
	// group, which follows the rule of [Lock.Name]. If replicas with different numbers are up, the
	// largest number counts. A group that no job has is an error.
	Groups map[string]int

	// Store holds leases and records. Nil is an error.
	Store store.Store

	// App is the namespace of the entries: lower-case letters, digits and
	// hyphens. Programs of the same App share their ticks. Empty: "soloist".
	App string

	// Replica names this process in records and logs. Empty: a random name.
	Replica string

	// Logger receives what the scheduler logs. Nil: slog.Default(). It may block: one goroutine
	// writes the lines, in order, and only the start of a try waits for it, for at most a sixth
	// of the lease. Up to 500 lines wait; further lines are dropped, and the log says how many
	// once it goes on. After three minutes [Health] reports the log. Run, RunDue and RunNow wait
	// for their lines for up to five seconds at their end; after that, a goroutine that the
	// Logger blocks stays until the Logger returns. The Log of a [Run] writes directly: a run
	// that logs waits for the Logger.
	Logger *slog.Logger

	// Events receives what happens on this replica, as it happens: see package event. It may
	// block: one goroutine at a time calls it, in order, and no run and no lease waits for it. Up
	// to 5,000 events wait; further ones are dropped, and an event of the kind Dropped says how
	// many. After three minutes [Health] reports it. If it panics, the panic is logged and the
	// next event follows. Run, RunDue and RunNow wait for their events as they do for their lines.
	// Nil: only the Logger reports what happens.
	Events func(event.Event)

	// Grace is how long running jobs may go on after the context of Run has ended, before their
	// own contexts end. Singletons go on until the other replicas had the time to notice, a third
	// of the lease and a second, but no longer than Grace. Zero: the contexts end at once, and
	// the record does not announce it, so the other replicas find a released lease at their next
	// read, within a third of its length.
	Grace time.Duration

	// Alone reports whether no other replica of the App is up; false if that is not known. It is
	// called for each singleton that is to stop, which ends at once if it returns true, as no
	// replica could take over. It must return when its context ends, with the Grace. If another
	// replica is up all the same, that one finds the released lease within a third of its length.
	// Nil: one is assumed to be up.
	Alone func(context.Context) bool

	// Overrun is called when a run has not returned a sixth of the lease after it lost its lease
	// or stalled, even if its context had ended before that. By then the process has to end, since
	// the lease can go to another replica. It is not called for a job of EveryReplica, which has
	// no lease. Nil: only [Health] shows the overrun.
	Overrun func(job string, cause error)

	// Now is this replica's wall clock, which says when a tick is due. Nil: time.Now. It is never
	// used for how long something takes.
	Now func() time.Time

	// Elapsed is the time since some fixed instant, which says how long
	// something takes. It has to count the time for which the machine was
	// suspended, and steps of the wall clock must not touch it. Nil: on Linux
	// the machine's clock for that, CLOCK_BOOTTIME. On other systems Go's
	// monotonic clock, which may stand still in suspension
	// (https://go.dev/issue/24595): a replica that was suspended for longer than
	// its lease may then go on in parallel with the next holder, until its next renewal is
	// refused.
	Elapsed func() time.Duration

	once sync.Once
	core core // made by the first call of a method
}

// A core is what does the work of a Scheduler.
type core struct {
	invalid error // what is wrong with the fields of the Scheduler
	desk.Desk
	beside beside         // what is bound and waited for
	told   *listener      // has the events of the work
	spread *spread.Spread // of the shards of Singletons; nil: there are none, or the store cannot list
}

func init() {
	desk.Of = func(scheduler any) (*desk.Desk, error) {
		s := scheduler.(*Scheduler)
		return &s.core.Desk, s.Validate()
	}
}

// Validate returns all that is wrong with the scheduler's fields, joined, or nil.
func (s *Scheduler) Validate() error {
	s.once.Do(s.prepare)
	return s.core.invalid
}

// prepare fills in defaults, checks the fields and makes the runners. It runs once, in the first
// call of any method, so that a Scheduler can be a struct literal.
func (s *Scheduler) prepare() {
	if s.Elapsed == nil {
		s.Elapsed = elapsed.Now
	}
	if s.App == "" {
		s.App = "soloist"
	}
	if s.Replica == "" {
		s.Replica = "replica-" + rand.Text()[:8]
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	s.core.Replica = &runner.Replica{App: s.App, Name: s.Replica, Store: s.Store, Grace: s.Grace, Alone: s.Alone, Overrun: s.Overrun,
		Clock: &lease.Clock{Wall: elapsed.Wall(s.Now), Elapsed: s.Elapsed}, Created: s.Elapsed()}
	s.core.told = listen(s.core.Replica, s.Logger, s.Events)
	s.prepareOrders()
	var errs []error
	groups := s.prepareGroups()
	jobs, schedules := newLineage(s.Jobs, s.Singletons), map[string]*ticks.Ticks{} // by their text: thousands of jobs may have the same
	for i := range s.Jobs {
		j := &s.Jobs[i]
		runners, err := j.runnerJobs(s.Store, s.core.told.job, jobs.of(j), schedules)
		for _, r := range runners {
			if g := groups[j.Group]; g != nil {
				r.Group, r.Policy.Group = g, j.Group
			}
		}
		errs = append(errs, s.add(runners, err))
	}
	for i := range s.Singletons {
		errs = append(errs, s.addSingleton(&s.Singletons[i]))
	}
	if s.core.invalid = errors.Join(s.checkSelf(), errors.Join(errs...)); s.core.invalid == nil {
		runner.Follow(s.core.Runners)
	}
}

// add makes the runners of a job whose settings are valid.
func (s *Scheduler) add(jobs []*runner.Job, err error) error {
	for _, j := range jobs {
		j.Task.Do = tellReplica(s.core.Replica, j.Task.Do)
		s.core.Runners = append(s.core.Runners, runner.New(s.core.Replica, j))
	}
	return err
}

// prepareOrders lets the replica read what operators order, if the store keeps it.
func (s *Scheduler) prepareOrders() {
	documents, ok := s.Store.(store.Documenter)
	if !ok {
		return
	}
	s.core.Replica.Orders = control.NewWatch(&control.Client{Store: documents, Entries: s.Store, App: s.App, Clock: s.core.Replica.Clock,
		Jitter: lease.NewJitter(fmt.Sprint(s.Replica, "orders", s.core.Replica.Created))}, func() {
		for _, r := range s.core.Runners {
			r.Heed()
		}
	})
}

// checkSelf checks the fields of the scheduler that belong to no single job or singleton.
func (s *Scheduler) checkSelf() error {
	errs := checkPlace(s.Store, s.App, s.Replica)
	errs = append(errs, checkDuration("Grace", s.Grace, time.Millisecond))
	if len(s.Jobs)+len(s.Singletons) == 0 {
		errs = append(errs, errors.New("there is neither a job nor a singleton"))
	}
	errs = append(errs, s.checkDuplicates()...)
	return errors.Join(append(errs, s.checkGroups()...)...)
}

// checkDuplicates reports each name that is used more than once, once. The shards of a job are named
// after it, and another job must not have such a name.
func (s *Scheduler) checkDuplicates() (errs []error) {
	times, shardOf := map[string]int{}, map[string]string{}
	count := func(name string) {
		if times[name]++; times[name] == 2 {
			errs = append(errs, fmt.Errorf("the name %.80q is used more than once", name))
		}
	}
	countShards := func(whole string, shards int) {
		for _, name := range ShardNames(whole, shards) {
			if isSplit(shards) {
				shardOf[name] = whole
			}
		}
	}
	for _, j := range s.Jobs {
		count(j.Name)
		countShards(j.Name, j.Shards)
	}
	for _, g := range s.Singletons {
		count(g.Name)
		countShards(g.Name, g.Shards)
	}
	for _, name := range slices.Sorted(maps.Keys(shardOf)) {
		if times[name] > 0 {
			errs = append(errs, fmt.Errorf("the name %.80q is used more than once: a shard of %q has it, too", name, shardOf[name]))
		}
	}
	return errs
}

// runner returns the runner of a job or singleton.
func (s *Scheduler) runner(job string) (*runner.Runner, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.core.Runner(job)
}

// bareReplica returns the replica for locks that a program takes without a schedule. It shares the clocks
// of another replica, if given, and what must not be told.
func bareReplica(app, name string, backend store.Store, of *runner.Replica) *runner.Replica {
	r := &runner.Replica{App: app, Name: name, Store: backend}
	if of != nil {
		r.Clock, r.Created = of.Clock, of.Created
		r.HideAs(of)
		return r
	}
	r.Clock, r.Created = &lease.Clock{Wall: elapsed.Wall(nil), Elapsed: elapsed.Now}, elapsed.Now()
	return r
}

// A replicaKey is the key of the context of a run; the value is the replica that runs it.
type replicaKey struct{}

// tellReplica has the runs of do know their replica.
func tellReplica(of *runner.Replica, do func(context.Context, *supervise.Handle) error) func(context.Context, *supervise.Handle) error {
	return func(ctx context.Context, h *supervise.Handle) error {
		return do(context.WithValue(ctx, replicaKey{}, of), h)
	}
}
