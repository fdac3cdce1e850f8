package soloist

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/runner"
)

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
	d.add(r, JobReport(r.RunDue(ctx, d.heard, runner.Wake(wake))))
}

// runBackfill runs ticks of a backfill of a job while the call has time for them. After a tick of the job that
// came due meanwhile, the jobs that follow it have their turn.
func (d *dueCall) runBackfill(ctx context.Context, r *runner.Runner) {
	for more := d.report(r).Err == nil; more; {
		report, ticked := r.RunBackfilled(ctx, d.begin)
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
