package soloist

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A Wake is what a platform wakes a program up for. The zero value is enough:
// a call does what is due, whoever called.
type Wake struct {
	// Jobs are the names of those to look after. Empty: all.
	Jobs []string

	// Tick is the tick that a timer has fired for. The timer may be a moment
	// early, which is waited out, with an older tick too that is still due; and
	// a job that has no entry yet starts with this tick. One that is not within
	// a minute of the store's time, of this process's for an EveryReplica job,
	// is not believed. Zero: not known.
	Tick time.Time
}

// RunDue does, once, what is due now for each job, then says when to look
// again. It is for platforms that wake a program up: nothing goes on in the
// background, and singletons are left out. Another replica's run is not waited
// for: a later call settles it if that replica dies. The error joins what kept
// jobs from being looked after, ticks whose lease was lost before they ran, and
// outcomes that were refused or not confirmed; a run that failed is in the report alone.
// A call tries for five lengths of the lease to write an outcome, then it ends.
//
// An EveryReplica job has no record that says what is due: this process runs the
// tick that the wake-up names, else the newest of the last minute, and none
// twice.
//
// A job whose Timeout is longer than what the deadline of ctx leaves is not
// started: the report says so, and the tick stays due. Ticks that are not to be
// run are settled all the same.
func (s *Scheduler) RunDue(ctx context.Context, wake Wake) (Report, error) {
	if err := s.Validate(); err != nil {
		return Report{}, err
	}
	for _, name := range wake.Jobs {
		if r, err := s.runner(name); err != nil {
			return Report{}, err
		} else if r.Singleton() {
			return Report{}, fmt.Errorf("%s is a singleton: it has no ticks", name)
		}
	}
	defer s.replica.FlushLog()
	var jobs []*runner.Runner
	for _, r := range s.runners {
		if !r.Singleton() && (len(wake.Jobs) == 0 || slices.Contains(wake.Jobs, r.Name())) {
			jobs = append(jobs, r)
		}
	}
	reports := make([]JobReport, len(jobs))
	s.each(jobs, func(i int, r *runner.Runner) { reports[i] = JobReport(r.RunDue(ctx, runner.Wake(wake))) })
	return newReport(reports)
}

// each calls f for every runner, side by side, and waits for all.
func (s *Scheduler) each(runners []*runner.Runner, f func(i int, r *runner.Runner)) {
	runner.Each(runners, func(r *runner.Runner) { f(slices.Index(runners, r), r) })
}

// requestRule keeps requests short and plain: they are in the record, in logs,
// and in [Run.ID].
var requestRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// RunNow runs a job once by hand, beside its ticks, on this replica, and returns
// when that is over or ctx, after Grace, has ended it. It is claimed as a tick is,
// so only one replica runs the job at a time; it settles no tick but those that
// come due under it, which are skipped. If another tick was due before it, they
// are left too, and Missed says what becomes of all of them. Where the schedule in
// force is another one, it stays in force, and all its ticks are left to it.
//
// The request names the wish: up to 64 letters, digits, dots, colons, hyphens
// and underscores. One that reads as a tick in [Run.ID] is refused. One that the
// record still knows is not run again, and its outcome returned. A job whose Timeout is longer than what the deadline of ctx
// leaves is not started. [ErrHeld]: another replica runs the job, or its tick
// has to be run again first. Where ctx ends before the run has begun, the request
// stays unknown, and may be made again. Where the run was over and its outcome
// was refused, as another replica had settled the run, or not confirmed, as the
// store did not answer, the error says so.
func (s *Scheduler) RunNow(ctx context.Context, job, request string) (store.Outcome, error) {
	r, err := s.runner(job)
	switch {
	case err != nil:
		return store.Outcome{}, err
	case r.Singleton():
		return store.Outcome{}, fmt.Errorf("%s is a singleton: it is not run by hand", job)
	case !requestRule.MatchString(request):
		return store.Outcome{}, wrong("request", quote(request), "a letter or digit, then up to 63 of them or . : - _")
	case readsAsTick(request):
		return store.Outcome{}, wrong("request", quote(request), "none that reads as a tick: Run.ID would be the id of that tick")
	}
	defer s.replica.FlushLog()
	return r.RunNow(ctx, request)
}

// readsAsTick reports whether a request is written as a tick is in [Run.ID].
func readsAsTick(request string) bool {
	at, err := time.Parse(time.RFC3339, request)
	return err == nil && at.UTC().Format(time.RFC3339) == request
}

// StepDown hands over what this replica runs of a job or singleton, as a stop
// of the replica would: the record says so, other replicas come near, the run's
// context ends with [ErrStopped], and another replica may have the lease. It
// returns once the run is over or ctx has ended; a run that calls it waits for
// itself. This replica then leaves the job alone for a third of its lease and a
// second. An error: there is no such job, or no lease of it is held here.
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

// Unlock ends the lease of a job or singleton, whichever replica has it: when it
// would have expired, or at once if now is set, while its holder may still work.
// The next holder waits for the length of the lease before it claims, since the
// last one may trust its lease until then. With now the record tells who has
// unlocked the job: it names Replica. [ErrLost]: there is no lease.
// [ErrUntold]: the lease is ended, and the record does not tell of it.
// fs.ErrNotExist: the job has no entry.
func (s *Scheduler) Unlock(ctx context.Context, job string, now bool) error {
	r, err := s.runner(job)
	if err != nil {
		return err
	}
	return r.Unlock(ctx, now)
}
