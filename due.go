package soloist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/runner"
)

// A Wake is what a platform woke the program up for. The zero value is enough for jobs that have an
// entry: a call does what is due, whatever woke the program up. For a job that has none yet set Tick.
type Wake struct {
	// Jobs are the names of the jobs to run if they are due; those that follow them are run too,
	// if they are due then; see [Job.After]. The name of a job with shards means all of them.
	// Empty: all.
	Jobs []string

	// Tick is the tick that a timer has fired for. A timer may fire a moment early: the call
	// then waits, with an older tick too that is still due. A job that has no entry yet starts
	// with this tick. A tick more than a minute from the store's time is ignored; for an EveryReplica
	// job, more than a minute from this process's time. Zero: not known; a job that has no entry yet
	// gets one then, and starts with its next tick.
	Tick time.Time
}

// RunDue does once what is due now for each job, then returns when to call it again. It is
// for platforms that wake a program up: nothing goes on in the background, and singletons are
// left out. It does not wait for a run of another replica: if that replica dies, a later call
// settles the run. The error joins what prevented jobs from being checked, ticks whose lease
// was lost before they ran, outcomes that were refused or not confirmed, and runs that need a longer
// call: the first of a job, and one after a broken lease. A run that failed is in the report alone.
// A call tries to write an outcome for five lengths of the lease; then it ends.
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
	defer s.core.Replica.Orders.Use()()
	d := &dueCall{scheduler: s, jobs: jobs, begin: time.Now(), heard: s.core.Replica.Orders.Now(), reports: make([]JobReport, len(jobs))}
	s.inOrder(jobs, func(r *runner.Runner) { d.runTicks(ctx, r, wake) })
	runner.Each(jobs, func(r *runner.Runner) { d.runBackfill(ctx, r) })
	return newReport(d.reports)
}

// woken returns the runners of jobs and of those that follow them, in the order of the scheduler's; for
// a job with shards, its shards' runners. No names: of all jobs.
func (s *Scheduler) woken(names []string) (jobs []*runner.Runner, err error) {
	for _, name := range names {
		shards := s.core.Shards(name)
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
		return slices.DeleteFunc(slices.Clone(s.core.Runners), (*runner.Runner).Singleton), nil
	}
	var parts []string
	for _, r := range s.core.Runners {
		if slices.Contains(names, r.Name()) || slices.Contains(names, r.ShardOf()) {
			parts = append(parts, r.Name())
		}
	}
	return s.withFollowers(parts), nil
}

// withFollowers returns the runners of jobs, and of those that follow them, in the order of all.
func (s *Scheduler) withFollowers(jobs []string) (all []*runner.Runner) {
	followers := map[string][]string{}
	for _, r := range s.core.Runners {
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
	for _, r := range s.core.Runners {
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

// NextDue returns when a replica is wanted next, by the store's clock: now or before, if something is left to do; zero, if
// nothing will ever be. It is for a platform that has no replica up until then. It reads every record once, as
// [Scheduler.Status] does, and changes nothing.
//
// A replica is wanted at the next tick of each job, and at once for a tick that is due, for a run whose runner has died,
// for a tick that waits for another attempt, for a run or a backfill that was ordered. While a run is under way,
// wherever that is, one is wanted when its lease would end if its holder died now. A tick that has not succeeded by
// Late.Finish is to be reported. A job that is paused wants none, until the pause ends by itself; nor does a job that is
// over. Nor do singletons and jobs of EveryReplica: they run on replicas that are up.
//
// If a record, or the operators' orders, cannot be read, a replica is wanted in a minute. A record that this program cannot
// use wants none before the next tick: only a person can help. The error is Validate's; the time
// returned with it means nothing.
func (s *Scheduler) NextDue(ctx context.Context) (time.Time, error) {
	if err := s.Validate(); err != nil {
		return time.Time{}, err
	}
	return runner.Wanted(ctx, s.core.Runners), nil
}

// A dueCall is one call of RunDue.
type dueCall struct {
	scheduler *Scheduler
	jobs      []*runner.Runner // of the call
	begin     time.Time
	heard     control.Moment // the orders of operators are read unless they were since

	mu      sync.Mutex
	reports []JobReport // of jobs
}

// runTicks does what is due of a job, except a backfill.
func (d *dueCall) runTicks(ctx context.Context, r *runner.Runner, wake Wake) {
	d.add(r, JobReport(runner.RunDue(ctx, r, d.heard, runner.Wake(wake))))
}

// runBackfill runs ticks of a backfill of a job while the call has time for them. After a tick of the job that
// came due meanwhile, the jobs that follow it have their turn.
func (d *dueCall) runBackfill(ctx context.Context, r *runner.Runner) {
	for more := d.report(r).Err == nil; more; {
		report, ticked := runner.RunBackfilled(ctx, r, d.begin)
		if report.Job != "" {
			d.add(r, JobReport(report))
		}
		if more = ticked && report.Err == nil; more {
			followers := d.scheduler.withFollowers([]string{r.Name()})
			followers = slices.DeleteFunc(followers, func(f *runner.Runner) bool { return f == r })
			d.scheduler.inOrder(followers, func(f *runner.Runner) { d.runTicks(ctx, f, Wake{}) })
		}
	}
}

// report returns the report of a job, as it is by now.
func (d *dueCall) report(r *runner.Runner) JobReport {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reports[slices.Index(d.jobs, r)]
}

// add adds to the report of a job what the call has done since.
func (d *dueCall) add(r *runner.Runner, since JobReport) {
	d.mu.Lock()
	defer d.mu.Unlock()
	report := &d.reports[slices.Index(d.jobs, r)]
	since.Ran, since.Err = append(report.Ran, since.Ran...), errors.Join(report.Err, since.Err)
	*report = since
}
