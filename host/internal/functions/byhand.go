package functions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// runNow makes a manual run of one job.
func (f *Handler) runNow(ctx context.Context, name, request string) result {
	if err := f.before(ctx, name); err != nil {
		return f.early(err)
	}
	ctx, done := f.orOutage(ctx, name)
	defer done()
	j := soloist.JobReport{Job: name}
	outcome, err := f.app.Scheduler.RunNow(ctx, name, request)
	if err == nil {
		j.Ran = []event.Outcome{outcome}
	} else {
		j.Err = err
		f.app.Log.Warn("not run by hand", "job", name, "request", request, "error", err)
	}
	return result{report: soloist.Report{Jobs: []soloist.JobReport{j}}, unseen: err != nil, busy: errors.Is(err, store.ErrHeld)}
}

// before waits for the work that precedes the jobs. This wait has its own limit.
func (f *Handler) before(ctx context.Context, job string) error {
	ctx, done := f.orOutage(ctx, job)
	defer done()
	return f.app.Before.Run(ctx)
}

// outagePatience is how long a call of an HTTP trigger waits for a storage, or for
// one record in it, that is out of reach. Somebody waits for the answer, and the platform's front end
// does for 230 s only
// (https://learn.microsoft.com/azure/azure-functions/functions-scale#timeout).
const outagePatience = 20 * time.Second

// orOutage ends with an outage that keeps the run from beginning: when outagePatience is over, or later. Once the run
// has begun, no outage ends the context: it would cut short the write of the
// outcome, and another replica would settle the run as abandoned.
func (f *Handler) orOutage(ctx context.Context, job string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	begun, patience := false, (*time.Timer)(nil)
	begins := func() {
		mu.Lock()
		defer mu.Unlock()
		begun = true
		patience.Stop()
	}
	mu.Lock()
	defer mu.Unlock()
	patience = time.AfterFunc(outagePatience, func() {
		mu.Lock()
		defer mu.Unlock()
		// If other records can be read, only the job has the trouble.
		if h := f.app.Scheduler.Health(); !begun && (h.Storage != nil || h.Broken[job] != nil) {
			cancel(fmt.Errorf("not begun within %s", outagePatience))
		} else if !begun {
			patience.Reset(time.Second) // the outage may still come
		}
	})
	return context.WithValue(ctx, runBegins{}, begins), func() { begins(); cancel(nil) }
}

// runBegins is the key of a func() in the context of a manual run, and of what precedes it.
// Both call it when they begin.
type runBegins struct{}

// Begins calls the function under runBegins, if there is one.
func Begins(ctx context.Context) {
	if begins, ok := ctx.Value(runBegins{}).(func()); ok {
		begins()
	}
}

// TellBegins makes each run call the function under runBegins. Health shows only
// what runs now: to it, a run that has returned and waits for the write of its
// outcome looks like a run that has not begun.
func TellBegins(jobs []soloist.Job) {
	for i := range jobs {
		do := jobs[i].Do
		if do == nil {
			continue // a mistake, which Validate reports
		}
		jobs[i].Do = func(ctx context.Context, run *soloist.Run) error {
			Begins(ctx)
			return do(ctx, run)
		}
	}
}
