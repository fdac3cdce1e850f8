package soloist

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/queue"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Scheduler does the work of a program on one replica. Every replica has its own, over the same
// store. The first call of a method reads the fields; later changes have no effect.
type Scheduler struct {
	Jobs       []Job
	Singletons []Singleton

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
	// Nil: only the Logger tells what happens.
	Events func(event.Event)

	// Grace is how long running jobs may go on after the context of Run has ended, before their
	// own contexts end. Singletons go on until the other replicas had the time to notice, a third
	// of the lease and a second, but no longer than Grace. Zero: the contexts end at once, and
	// the record does not announce it, so the other replicas find a released lease at their next
	// read, within a third of its length.
	Grace time.Duration

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
	// its lease may then go on beside the next one, until its next renewal is
	// refused.
	Elapsed func() time.Duration

	once    sync.Once
	invalid error
	replica *runner.Replica
	lines   *logqueue.Queue           // of Logger
	logs    map[string]*slog.Logger   // of each job, by name, into lines
	events  *queue.Queue[event.Event] // of Events; nil: no function takes them
	runners []*runner.Runner          // of Jobs, then of Singletons
}

// Validate returns all that is wrong with the scheduler's fields, joined, or nil.
func (s *Scheduler) Validate() error {
	s.once.Do(s.prepare)
	return s.invalid
}

// Run does the work until ctx ends, then lets running jobs go on for Grace. It returns when
// everything that it started has ended. Its error is that of Validate, else nil. Trouble with the
// store is logged, and the calls are repeated.
func (s *Scheduler) Run(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	defer s.flush()
	defer s.replica.Orders.Use()()
	runner.Each(s.runners, func(r *runner.Runner) { r.Loop(ctx) })
	return nil
}

// runAlone runs a singleton in a scheduler of its own.
func runAlone(ctx context.Context, g Singleton, backend store.Store) error {
	return (&Scheduler{Singletons: []Singleton{g}, Store: backend}).Run(ctx)
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
	s.replica = &runner.Replica{App: s.App, Name: s.Replica, Store: s.Store, Grace: s.Grace, Overrun: s.Overrun,
		Wall: s.wall, Clock: &lease.Clock{Wall: s.wall, Elapsed: s.Elapsed}, Created: s.Elapsed()}
	s.listen()
	s.prepareOrders()
	var errs []error
	for i := range s.Jobs {
		errs = append(errs, s.add(s.Jobs[i].runnerJob(s)))
	}
	for i := range s.Singletons {
		errs = append(errs, s.add(s.Singletons[i].runnerJob(s)))
	}
	s.invalid = errors.Join(s.checkSelf(), errors.Join(errs...))
}

// add makes the runner of a job whose settings are valid.
func (s *Scheduler) add(j *runner.Job, err error) error {
	if err == nil {
		s.runners = append(s.runners, runner.New(s.replica, j))
	}
	return err
}

// wall returns the time of the wall clock alone. Go compares two times that both have a monotonic
// reading by that reading, which may stand still, in suspension, while the wall clock goes on.
func (s *Scheduler) wall() time.Time {
	if s.Now != nil {
		return s.Now().Round(0)
	}
	return time.Now().Round(0)
}

// runner returns the runner of a job or singleton.
func (s *Scheduler) runner(job string) (*runner.Runner, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	for _, r := range s.runners {
		if r.Name() == job {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no job or singleton %q", job)
}

// runnerJob returns the job in the form that internal/runner takes, or what is wrong with it.
func (j *Job) runnerJob(s *Scheduler) (*runner.Job, error) {
	ticks, err := j.check(s.Store)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.Name, err)
	}
	if _, ok := s.Store.(store.Documenter); j.Retry.PauseAfter > 0 && !ok {
		return nil, fmt.Errorf("job %q: PauseAfter: %w, and nothing could resume the job", j.Name, errNoOrders)
	}
	task := s.newTask(j.Name, j.Do, j.HeartbeatTimeout, j.HealthCheck, j.MaxCheckpoint)
	task.Timeout, task.MaxTries, task.Backoff = j.Timeout, j.Retry.MaxTries, orDefault(j.Retry.Backoff, defaultBackoff)
	return &runner.Job{Name: j.Name, Task: task, EveryReplica: j.EveryReplica, Schedule: ticks.Words,
		Policy: plan.Policy{Ticks: ticks, StartingDeadline: j.StartingDeadline, Lease: orDefault(j.Lease, defaultLease),
			Missed: plan.Missed(j.Missed), Interrupted: plan.Interrupted(j.Interrupted), Paused: j.Paused, PauseAfter: int64(j.Retry.PauseAfter),
			Spec: spec("job", ticks.String())}}, nil
}

// runnerJob returns the singleton in the form that internal/runner takes, or what is wrong with it.
func (g *Singleton) runnerJob(s *Scheduler) (*runner.Job, error) {
	if err := g.check(s.Store); err != nil {
		return nil, fmt.Errorf("singleton %q: %w", g.Name, err)
	}
	return &runner.Job{Name: g.Name, Rest: orDefault(g.Backoff, defaultRest),
		Task:   s.newTask(g.Name, g.Do, g.HeartbeatTimeout, g.HealthCheck, g.MaxCheckpoint),
		Policy: plan.Policy{Lease: orDefault(g.Lease, defaultLease), Spec: spec("singleton")}}, nil
}

// newTask returns the settings that jobs and singletons have in common, with their defaults.
func (s *Scheduler) newTask(name string, do func(context.Context, *Run) error, silence time.Duration, health HealthCheck, checkpoint int) supervise.Task {
	log := ofJob(s.Logger, name, s.Replica) // no queue: a run that logs waits for the Logger
	s.logs[name] = s.lines.Logger(log)
	return supervise.Task{
		Do:               func(ctx context.Context, h *supervise.Handle) error { return do(ctx, newRun(log, name, h)) },
		HeartbeatTimeout: silence, HealthCheck: health.Check,
		HealthInterval: orDefault(health.Interval, defaultHealthy), FailureThreshold: orDefault(health.FailureThreshold, defaultFailures),
		MaxCheckpoint: orDefault(checkpoint, defaultCheckpoint)}
}

// spec returns a hash of a job's definition. Replicas with another hash have other ticks, so only
// those of one definition may decide about the job at a time.
func spec(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// orDefault returns v, or def if v is zero: the zero value of a field means its default.
func orDefault[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
