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
)

// A Scheduler does the work of a program on one replica. Every replica has its
// own, over the same store.
type Scheduler struct {
	Jobs       []Job
	Singletons []Singleton

	// Store holds leases and records. Nil is an error.
	Store Store

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
	// is not called for a job that runs Everywhere, which has no lease. Nil: the
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
	created time.Duration // elapsed
	start   sync.Once
	born    time.Time // created, by the service's clock
	invalid error
	workers []*worker
	service serviceClock
	outage  outage
	lines   logQueue
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
	defer s.lines.wait(lastLines)
	each(s.workers, func(w *worker) { w.loop(ctx) })
	return nil
}

// each calls f for every worker, side by side, and waits for all.
func each(workers []*worker, f func(*worker)) {
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { f(w) })
	}
	all.Wait()
}

// prepare checks the fields and makes the workers.
func (s *Scheduler) prepare() {
	if s.Elapsed == nil {
		s.Elapsed = elapsed.Now
	}
	s.created = s.Elapsed()
	s.service.wall, s.service.elapsed = s.wall, s.Elapsed
	if s.App == "" {
		s.App = "soloist"
	}
	if s.Replica == "" {
		s.Replica = "replica-" + rand.Text()[:8]
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	s.lines.root = s.Logger.Handler()
	var errs []error
	for i := range s.Jobs {
		errs = append(errs, s.addJob(&s.Jobs[i]))
	}
	for i := range s.Singletons {
		errs = append(errs, s.addSingleton(&s.Singletons[i]))
	}
	s.invalid = errors.Join(s.checkSelf(), errors.Join(errs...))
}

func (s *Scheduler) addJob(j *Job) error {
	ticks, err := j.check(s.Store)
	if err != nil {
		return fmt.Errorf("job %q: %w", j.Name, err)
	}
	w := s.addWorker(j.Name, orDefault(j.Lease, defaultLease), j.Do)
	w.timeout, w.words = j.Timeout, ticks.Words
	w.everywhere = j.Everywhere
	w.limits = newLimits(j.Silence, j.Healthy, j.HealthyEvery, j.HealthyFailures)
	w.largest = orDefault(j.MaxCheckpoint, defaultCheckpoint)
	w.tries, w.tryAfter = j.Tries, orDefault(j.Backoff, defaultBackoff)
	w.policy = planner{ticks: ticks, window: j.Window, lease: w.length, missed: j.Missed,
		interrupted: j.Interrupted, paused: j.Paused, spec: spec("job", ticks.String())}
	w.planner = w.policy
	return nil
}

func (s *Scheduler) addSingleton(g *Singleton) error {
	if err := g.check(s.Store); err != nil {
		return fmt.Errorf("singleton %q: %w", g.Name, err)
	}
	w := s.addWorker(g.Name, orDefault(g.Lease, defaultLease), g.Do)
	w.limits = newLimits(g.Silence, g.Healthy, g.HealthyEvery, g.HealthyFailures)
	w.largest = orDefault(g.MaxCheckpoint, defaultCheckpoint)
	w.rest = orDefault(g.Backoff, defaultRest)
	w.policy = planner{spec: spec("singleton")}
	w.planner = w.policy
	return nil
}

func (s *Scheduler) addWorker(name string, length time.Duration, work func(context.Context, *Run) error) *worker {
	w := s.newWorker(cell{store: s.Store, name: s.App + "/" + name, length: length, clock: &s.service,
		dice: newDice(fmt.Sprint(s.Replica, name, s.created))}, &state{})
	l := s.Logger.With("job", name, "replica", s.Replica)
	w.duty = duty{index: len(s.workers), job: name, work: work, log: s.lines.logger(l), runLog: l}
	s.workers = append(s.workers, w)
	return w
}

func (s *Scheduler) newWorker(c cell, st *state) *worker {
	return &worker{Scheduler: s, cell: c, state: st, one: make(chan struct{}, 1),
		pause: c.backoff(c.length / 30), losses: c.backoff(firstLook),
		denials: &backoff{c.length, c.length, lookEvery, c.dice}}
}

func (s *Scheduler) wall() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// started is when this replica started, by the service's clock, so that
// replicas can tell which of them is the younger. It is called after the first
// answer of the store.
func (s *Scheduler) started() time.Time {
	s.start.Do(func() {
		now, _, ok := s.service.now()
		if !ok {
			now = s.wall()
		}
		s.born = now.Add(s.created - s.Elapsed()).Round(0).UTC()
	})
	return s.born
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
