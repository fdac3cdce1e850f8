package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/watch"
)

// tickCommand runs what is due and prints what was done.
type tickCommand struct{ jsonFlag }

func (*tickCommand) mode() mode { return mode{runs: true, ticks: true} }

func (c *tickCommand) do(ctx context.Context, a *app.App) int {
	ctx, cancel := a.InTime(ctx)
	defer cancel()
	a.FitLead(a.Patience())
	if err := a.Before.Run(ctx); err != nil { // no job may start
		body := view.New(a, []view.Ticked{})
		body.Error = format.Line(err.Error())
		return c.answer(a, exitFail, body, func() { a.Console.Tell("tick: %s", body.Error) })
	}
	report, err := pass(ctx, a)
	watch.NewClock(a.Log, a.Skew, nil).Look(ctx)
	code := exitOK
	if err != nil || slices.ContainsFunc(report.Jobs, view.Failed) {
		code = exitFail
	}
	var jobs []view.Ticked
	for _, j := range report.Jobs {
		jobs = append(jobs, view.NewTicked(j))
	}
	body := view.New(a, jobs)
	body.Next = format.UTC(report.Next)
	return c.answer(a, code, body, func() { printTicked(a, report) })
}

func printTicked(a *app.App, report soloist.Report) {
	w := format.Table(a.Console.Stdout, "JOB\tTICK\tDONE\tNEXT")
	for _, j := range report.Jobs {
		if len(j.Ran) == 0 {
			fmt.Fprintf(w, "%s\t-\t%s\t%s\n", j.Job, idleWords(j), format.Stamp(j.Next))
		}
		for _, f := range j.Ran {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Job, format.Stamp(f.Tick), format.Outcome(&f), format.Stamp(j.Next))
		}
	}
	w.Flush()
	if !report.Next.IsZero() {
		fmt.Fprintf(a.Console.Stdout, "\nnext tick %s, %s\n", format.Stamp(report.Next), format.Ahead(report.Next, a.Now()))
	}
}

// pass does what is due, in the time that the platform gives. With an alarm it waits for the ticks of the next minutes, and
// hands over to the alarm. An error that is not in the report is logged.
func pass(ctx context.Context, a *app.App) (all soloist.Report, err error) {
	if a.Alarm == nil {
		return a.Scheduler.RunDue(ctx, soloist.Wake{})
	}
	var mu sync.Mutex
	unset := a.Passes(ctx, a.Patience(), func() (ran bool) {
		report, _ := a.Scheduler.RunDue(ctx, soloist.Wake{})
		ran = slices.ContainsFunc(report.Jobs, func(j soloist.JobReport) bool { return len(j.Ran) > 0 })
		mu.Lock()
		defer mu.Unlock()
		all = app.Merged(all, report)
		return ran
	})
	for _, j := range all.Jobs {
		err = errors.Join(err, j.Err)
	}
	if unset != nil {
		a.Log.Error(format.Line(unset.Error()))
	}
	return all, errors.Join(err, unset)
}

// idleWords says why nothing was run.
func idleWords(j soloist.JobReport) string {
	switch {
	case j.Err != nil:
		return "error: " + format.Brief(j.Err.Error())
	case j.Replica != "":
		return "runs on " + format.Line(j.Replica)
	case j.Awaits != "":
		return view.AwaitWords(j.Awaits)
	}
	return "nothing is due"
}
