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

	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Scheduler does the work of a program on one replica. Every replica has its
// own, over the same store. Its fields are read by the first call of a method;
// later changes have no effect.
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

	// Logger is told what happens. Nil: slog.Default(). It may block: its lines
	// are written in order by one goroutine, and only the start of a try waits for
	// them, for a sixth of the lease at most. Up to 500 lines wait; more are
	// dropped, and counted in the log once it goes on. After three minutes
	// [Health] tells of it. Run, RunDue and RunNow wait for their lines for up to
	// five seconds at their end; after that, a goroutine that the Logger blocks
	// stays until the Logger returns. The Log of a [Run] writes directly: a run that
	// logs waits for the Logger.
	Logger *slog.Logger

	// Grace is how long running jobs go on after the context of Run has ended,
	// before theirs ends. Singletons go on until other replicas had the time to
	// notice, a third of the lease and a second, but no longer than Grace. Zero:
	// not at all, and the other replicas are not told: they find a released lease
	// at their next look, within a third of its length.
	Grace time.Duration

	// Overrun is called when a run has not returned a sixth of the lease after
	// it lost its lease or stalled, also where its context had ended before that:
	// the process has to be gone before the lease can go to another replica. It
	// is not called for a job of EveryReplica, which has no lease. Nil: the
	// overrun is in [Health] alone.
	Overrun func(job string, cause error)

	// Now is this replica's wall clock, which says when a tick is due. Nil:
	// time.Now. How long something takes is never asked of it.
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
	runners []*runner.Runner // of Jobs, then of Singletons
}

// Validate returns all that is wrong with the scheduler's fields, joined, or nil.
func (s *Scheduler) Validate() error {
	s.once.Do(s.prepare)
	return s.invalid
}

// Run does the work until ctx ends, then lets running jobs go on for Grace. It
// returns when all that it started has ended: what Validate says, else nil.
// Trouble with the store is logged and tried again.
func (s *Scheduler) Run(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	defer s.replica.FlushLog()
	runner.Each(s.runners, func(r *runner.Runner) { r.Loop(ctx) })
	return nil
}

// runAlone runs a singleton in a scheduler of its own.
func runAlone(ctx context.Context, g Singleton, backend store.Store) error {
	return (&Scheduler{Singletons: []Singleton{g}, Store: backend}).Run(ctx)
}

// prepare checks the fields and makes the runners.
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
		Wall: s.wall, Clock: &lease.Clock{Wall: s.wall, Elapsed: s.Elapsed}, Logger: s.Logger,
		Lines: &logqueue.Queue{Root: s.Logger.Handler()}, Created: s.Elapsed()}
	var errs []error
	for i := range s.Jobs {
		errs = append(errs, s.add(s.Jobs[i].runnerJob(s.Store)))
	}
	for i := range s.Singletons {
		errs = append(errs, s.add(s.Singletons[i].runnerJob(s.Store)))
	}
	s.invalid = errors.Join(s.checkSelf(), errors.Join(errs...))
}

func (s *Scheduler) add(j *runner.Job, err error) error {
	if err == nil {
		s.runners = append(s.runners, runner.New(s.replica, j))
	}
	return err
}

// wall is the time by the wall clock alone. Times with a monotonic reading are
// compared by that reading, which may stand still while the wall clock goes on.
func (s *Scheduler) wall() time.Time {
	if s.Now != nil {
		return s.Now().Round(0)
	}
	return time.Now().Round(0)
}

// runner returns the one of a job or singleton.
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

// runnerJob returns the job as the core runs it, or what is wrong with it.
func (j *Job) runnerJob(backend store.Store) (*runner.Job, error) {
	ticks, err := j.check(backend)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.Name, err)
	}
	task := newTask(j.Name, j.Do, j.HeartbeatTimeout, j.HealthCheck, j.HealthInterval, j.FailureThreshold, j.MaxCheckpoint)
	task.Timeout, task.MaxTries, task.Backoff = j.Timeout, j.MaxTries, orDefault(j.Backoff, defaultBackoff)
	return &runner.Job{Name: j.Name, Task: task, EveryReplica: j.EveryReplica, Schedule: ticks.Words,
		Policy: plan.Policy{Ticks: ticks, StartingDeadline: j.StartingDeadline, Lease: orDefault(j.Lease, defaultLease),
			Missed: plan.Missed(j.Missed), Interrupted: plan.Interrupted(j.Interrupted), Paused: j.Paused,
			Spec: spec("job", ticks.String())}}, nil
}

// runnerJob returns the singleton as the core runs it, or what is wrong with it.
func (g *Singleton) runnerJob(backend store.Store) (*runner.Job, error) {
	if err := g.check(backend); err != nil {
		return nil, fmt.Errorf("singleton %q: %w", g.Name, err)
	}
	return &runner.Job{Name: g.Name, Rest: orDefault(g.Backoff, defaultRest),
		Task:   newTask(g.Name, g.Do, g.HeartbeatTimeout, g.HealthCheck, g.HealthInterval, g.FailureThreshold, g.MaxCheckpoint),
		Policy: plan.Policy{Lease: orDefault(g.Lease, defaultLease), Spec: spec("singleton")}}, nil
}

// newTask returns what jobs and singletons have in common.
func newTask(name string, do func(context.Context, *Run) error, silence time.Duration, healthy func(context.Context) error, every time.Duration, failures, checkpoint int) supervise.Task {
	return supervise.Task{
		Do:               func(ctx context.Context, h *supervise.Handle) error { return do(ctx, newRun(name, h)) },
		HeartbeatTimeout: silence, HealthCheck: healthy,
		HealthInterval: orDefault(every, defaultHealthy), FailureThreshold: orDefault(failures, defaultFailures),
		MaxCheckpoint: orDefault(checkpoint, defaultCheckpoint)}
}

// spec is a hash of what makes the ticks of a job what they are.
func spec(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
