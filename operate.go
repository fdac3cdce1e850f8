package soloist

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A Wake is what a platform woke the program up for. The zero value is enough: a call does
// what is due, whatever woke the program up.
type Wake struct {
	// Jobs are the names of the jobs to run if they are due; those that follow them are run too,
	// if they are due then; see [Job.After]. The name of a job with shards means all of them.
	// Empty: all.
	Jobs []string

	// Tick is the tick that a timer has fired for. A timer may fire a moment early: the call
	// then waits, with an older tick too that is still due. A job that has no entry yet starts
	// with this tick. A tick more than a minute from the store's time is ignored; for an
	// EveryReplica job, more than a minute from this process's time. Zero: not known.
	Tick time.Time
}

// RunDue does once what is due now for each job, then returns when to call it again. It is
// for platforms that wake a program up: nothing goes on in the background, and singletons are
// left out. It does not wait for a run of another replica: if that replica dies, a later call
// settles the run. The error joins what prevented jobs from being checked, ticks whose lease
// was lost before they ran, and outcomes that were refused or not confirmed. A run that failed
// is in the report alone. A call tries to write an outcome for five lengths of the lease; then
// it ends.
//
// An EveryReplica job has no record that says what is due: this process runs the tick that the
// wake-up names, else the newest tick of the last minute, and no tick twice.
//
// A job whose Timeout is longer than what the deadline of ctx leaves is not started: the report
// says so, and the tick stays due. Ticks that are not to be run are settled anyway.
//
// A job that follows others is looked at once the call has done what is due of those, so a chain of
// jobs runs in one call. If another replica runs one of them, a later call runs the follower. If
// another call on this replica runs an older tick of the follower, one call waits for that.
//
// Ticks of a backfill are run last, while the call has time for them: also a follower's tick comes before
// them. A tick that comes due meanwhile comes before the rest, and so does what follows it.
func (s *Scheduler) RunDue(ctx context.Context, wake Wake) (Report, error) {
	if err := s.Validate(); err != nil {
		return Report{}, err
	}
	jobs, err := s.woken(wake.Jobs)
	if err != nil {
		return Report{}, err
	}
	defer s.core.told.flush()
	defer s.core.replica.Orders.Use()()
	d := &dueCall{scheduler: s, jobs: jobs, begin: time.Now(), heard: s.core.replica.Orders.Now(), reports: make([]JobReport, len(jobs))}
	s.inOrder(jobs, func(r *runner.Runner) { d.runTicks(ctx, r, wake) })
	runner.Each(jobs, func(r *runner.Runner) { d.runBackfill(ctx, r) })
	return newReport(d.reports)
}

// woken returns the runners of jobs and of those that follow them, in the order of the scheduler's; for
// a job with shards, its shards' runners. No names: of all jobs.
func (s *Scheduler) woken(names []string) (jobs []*runner.Runner, err error) {
	for _, name := range names {
		shards := s.whole(name)
		if shards == nil {
			r, err := s.runner(name)
			if err != nil {
				return nil, err
			}
			shards = append(shards, r)
		}
		if shards[0].Singleton() {
			return nil, fmt.Errorf("%s is a singleton: it has no ticks", name)
		}
	}
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(s.core.runners), (*runner.Runner).Singleton), nil
	}
	var parts []string
	for _, r := range s.core.runners {
		if slices.Contains(names, r.Name()) || slices.Contains(names, r.ShardOf()) {
			parts = append(parts, r.Name())
		}
	}
	return s.withFollowers(parts), nil
}

// withFollowers returns the runners of jobs, and of those that follow them, in the order of all.
func (s *Scheduler) withFollowers(jobs []string) (all []*runner.Runner) {
	followers := map[string][]string{}
	for _, r := range s.core.runners {
		for _, name := range r.After() {
			followers[name] = append(followers[name], r.Name())
		}
	}
	in := map[string]bool{}
	for next := slices.Clone(jobs); len(next) > 0; next = next[1:] {
		if !in[next[0]] {
			in[next[0]] = true
			next = append(next, followers[next[0]]...)
		}
	}
	for _, r := range s.core.runners {
		if in[r.Name()] {
			all = append(all, r)
		}
	}
	return all
}

// inOrder calls f for every runner, for a follower after the calls for those that it follows have
// returned, and returns when all calls have.
func (s *Scheduler) inOrder(runners []*runner.Runner, f func(r *runner.Runner)) {
	over := map[string]chan struct{}{}
	for _, r := range runners {
		over[r.Name()] = make(chan struct{})
	}
	runner.Each(runners, func(r *runner.Runner) {
		defer close(over[r.Name()])
		for _, name := range r.After() {
			if before := over[name]; before != nil {
				<-before
			}
		}
		f(r)
	})
}

// RunNow runs a job once, in addition to its ticks, on this replica. It returns when the run is
// over, or when ctx, and after it Grace, has ended the run. The run is claimed as a tick is, so
// only one replica runs the job at a time. Ticks that come due under the run are skipped, unless
// a tick was due before the run began: then Missed says what becomes of that tick and of those
// that came due under the run. If another schedule is in force, it stays in force, and its
// replicas decide about all its ticks.
//
// The request is the name of this run: up to 64 letters, digits, dots, colons, hyphens and
// underscores. A name that reads as a tick in [Run.ID] is refused. A request that the record
// still knows is not run again: RunNow returns its outcome. A request that was ordered, and is
// known by [Scheduler.Control], is not run again either: RunNow returns an error if its outcome has
// left the record. If the orders cannot be read, it waits, as for the record. A job whose Timeout is longer than
// what the deadline of ctx leaves is not started. [ErrHeld]: another replica runs the job, or
// its tick has to be run again first. If ctx ends before the run has begun, the request stays
// unknown and may be made again. If the run was over and its outcome could not be written, the
// error says whether it was refused, as another replica had settled the run, or not confirmed,
// as the store did not answer.
func (s *Scheduler) RunNow(ctx context.Context, job, request string) (store.Outcome, error) {
	r, err := s.runner(job)
	switch {
	case err != nil:
		return store.Outcome{}, err
	case r.Singleton():
		return store.Outcome{}, fmt.Errorf("%s is a singleton: it is not run by hand", job)
	}
	if err := checkRequest(request); err != nil {
		return store.Outcome{}, err
	}
	defer s.core.told.flush()
	defer s.core.replica.Orders.Use()()
	return r.RunNow(ctx, request)
}

// StepDown hands over what this replica runs of a job or singleton, as a stop of the replica
// would: the record announces it, other replicas read more often, the run's context ends with
// [ErrStopped], and another replica may acquire the lease. It returns once the run is over or ctx
// has ended; a run that calls it waits for itself. This replica then leaves the job alone for a
// third of its lease and a second. An error: there is no such job, or this replica holds no lease
// of it.
func (s *Scheduler) StepDown(ctx context.Context, job string) error {
	r, err := s.runner(job)
	if err != nil {
		return err
	}
	held, err := r.StepDown(ctx)
	if !held {
		return fmt.Errorf("%s holds no lease on this replica", job)
	}
	return err
}

// Unlock ends the lease of a job or singleton, whichever replica holds it: when it would have
// expired or, if now is set, at once, while its holder may still work. The next holder waits for
// the length of the lease before it claims, since the last one may trust its lease until then.
// With now, the record names this Replica as the unlocker. [ErrLost]: there is no
// lease. [ErrUntold]: the lease is ended, and the record does not say so. fs.ErrNotExist: the job
// has no entry.
func (s *Scheduler) Unlock(ctx context.Context, job string, now bool) error {
	r, err := s.runner(job)
	if err != nil {
		return err
	}
	return r.Unlock(ctx, now)
}
