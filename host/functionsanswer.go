package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// An upshot is what an invocation came to.
type upshot struct {
	jobs   []ticked
	next   time.Time
	logs   []string
	failed bool // a run failed, as its record says
	unseen bool // a job could not be looked after, which no record says
	busy   bool // another run has the job that was to run by hand
}

// fails reports whether the platform is to see a failure. That a run failed is
// in its record, so it depends on the setting. What kept a job from being looked
// after is nowhere but in the log, and a retry by the platform helps there, since
// the tick is still due. Whoever called an HTTP trigger gets the answer itself.
func (o upshot) fails(c call, setting failure) bool {
	if c.http {
		return (o.failed || o.unseen) && !o.busy && setting == failError
	}
	return o.unseen || o.failed && setting == failError
}

// wake does what is due.
func (f *functions) wake(ctx context.Context, wake soloist.Wake) upshot {
	report, err := f.sched.RunDue(ctx, wake)
	if err != nil {
		f.log.Error("not all jobs could be looked after", "error", err)
	} else {
		f.lookAtClock(ctx)
	}
	o := upshot{next: report.Next, unseen: err != nil}
	overrun := f.sched.Health().Overrun
	for _, j := range report.Jobs {
		o.failed = o.failed || failed(j)
		if cause := overrun[j.Job]; cause != nil {
			j = soloist.JobReport{Job: j.Job, Ran: j.Ran, Next: j.Next, Err: errors.New(goesOn(cause))}
			o.unseen = true
		}
		o.jobs = append(o.jobs, newTicked(j))
		o.logs = append(o.logs, reportLines(j)...)
	}
	return o
}

// warmupPatience is within what the platform waits for a warm-up.
const warmupPatience = 10 * time.Second

// warm does what would keep the first call waiting: it reads each record, and so
// has a token and a connection. A new instance is of use without them too, so no
// trouble fails it.
func (f *functions) warm(ctx context.Context) (o upshot) {
	ctx, cancel := context.WithTimeout(ctx, warmupPatience)
	defer cancel()
	all, err := f.sched.Status(ctx)
	for _, j := range all {
		err = errors.Join(err, j.Err)
	}
	if err != nil {
		f.log.Warn("this instance is not warm: not all records could be read", "error", err)
		return upshot{logs: []string{line(err.Error())}}
	}
	return upshot{logs: []string{plural(len(all), "record") + " read"}}
}

func (f *functions) lookAtClock(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock.look(ctx)
}

// runNow runs one job by hand.
func (f *functions) runNow(ctx context.Context, name, request string) upshot {
	ctx, done := f.orOutage(ctx, name)
	defer done()
	j := soloist.JobReport{Job: name}
	outcome, err := f.sched.RunNow(ctx, name, request)
	if err == nil {
		j.Ran = []store.Outcome{outcome}
	} else {
		j.Err = err
		f.log.Warn("not run by hand", "job", name, "request", request, "error", err)
	}
	return upshot{jobs: []ticked{newTicked(j)}, logs: reportLines(j), failed: failed(j), unseen: err != nil, busy: errors.Is(err, store.ErrHeld)}
}

// outagePatience is how long a call of an HTTP trigger waits for a storage, or for
// one record in it, that is out of reach. Somebody waits for the answer, and the platform's front end
// does for 230 s only
// (https://learn.microsoft.com/azure/azure-functions/functions-scale#timeout).
const outagePatience = 20 * time.Second

// orOutage ends with an outage that keeps the run from beginning. Once the run
// has begun, no outage ends the context: it would cut short the write of the
// outcome, and another replica would settle the run as abandoned.
func (f *functions) orOutage(ctx context.Context, job string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	begun := make(chan struct{})
	var first sync.Once // of the beginning and the end by an outage
	var watch sync.WaitGroup
	watch.Go(func() {
		if f.outageBefore(ctx, job, begun) {
			first.Do(func() { cancel(fmt.Errorf("not begun within %s", outagePatience)) })
		}
	})
	begins := func() { first.Do(func() { close(begun) }) }
	return context.WithValue(ctx, runBegins{}, begins), func() { cancel(nil); watch.Wait() }
}

// outageBefore reports whether the storage is out of reach when the patience is
// over, or later, with the run not begun. Where other records can be read, the
// trouble is that of the job.
func (f *functions) outageBefore(ctx context.Context, job string, begun <-chan struct{}) bool {
	patience := time.NewTimer(outagePatience)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-begun:
			return false
		case <-patience.C:
		}
		if h := f.sched.Health(); h.Storage != nil || h.Broken[job] != nil {
			return true
		}
		patience.Reset(time.Second) // the outage may still come
	}
}

// runBegins is the key of a func() in the context of a run by hand. The run
// calls it when it begins.
type runBegins struct{}

// tellBegins makes each run call the function under runBegins. Health tells only
// what runs now: a run that has returned and waits for the write of its outcome
// looks there like one that has not begun.
func tellBegins(jobs []soloist.Job) {
	for i := range jobs {
		do := jobs[i].Do
		if do == nil {
			continue // a mistake, which Validate tells
		}
		jobs[i].Do = func(ctx context.Context, run *soloist.Run) error {
			if begins, ok := ctx.Value(runBegins{}).(func()); ok {
				begins()
			}
			return do(ctx, run)
		}
	}
}

// answer tells the host. It drops the body of any status but 200; what went
// wrong is in the log of the scheduler too.
func (f *functions) answer(w http.ResponseWriter, name string, c call, o upshot) {
	if c.pastDue {
		o.logs = append([]string{"the timer is past due"}, o.logs...)
	}
	body := newAnswer(f.app, o.jobs)
	body.Next = utc(o.next)
	in := invocation{Outputs: map[string]any{}, Logs: append([]string{}, o.logs...), ReturnValue: body}
	if c.http {
		in.Outputs["res"] = httpOutput(o, body)
	}
	code := http.StatusOK
	if o.fails(c, f.FunctionFailure) {
		code = http.StatusInternalServerError
		f.log.Error("the invocation fails", "function", name, "invocation", c.id, "logs", strings.Join(o.logs, "; "))
	}
	reply(w, code, in)
}

// httpOutput is what the host answers to whoever called the HTTP trigger, by the
// output binding "res".
func httpOutput(o upshot, body any) map[string]any {
	code := http.StatusOK
	switch {
	case o.busy:
		code = http.StatusConflict
	case o.failed, o.unseen:
		code = http.StatusInternalServerError
	}
	var text strings.Builder
	if err := writeJSON(&text, body, ""); err != nil { // an empty body would look like an answer
		code = http.StatusInternalServerError
		fmt.Fprintf(&text, `{"error":%q}`, "the answer cannot be written as JSON: "+line(err.Error()))
	}
	return map[string]any{"statusCode": fmt.Sprint(code), "body": strings.TrimSuffix(text.String(), "\n"), "headers": map[string]string{"Content-Type": "application/json"}}
}

func newTicked(j soloist.JobReport) ticked {
	t := ticked{Job: j.Job, Ran: plainOutcomes(j.Ran), Replica: j.Replica, Next: utc(j.Next)}
	if j.Err != nil {
		t.Error = line(j.Err.Error())
	}
	return t
}

func reportLines(j soloist.JobReport) (logs []string) {
	for _, f := range j.Ran {
		text := fmt.Sprintf("job %s: tick %s %s", j.Job, f.Tick.Format(time.RFC3339), f.Status)
		if f.Request != "" {
			text = fmt.Sprintf("job %s: request %s %s", j.Job, line(f.Request), f.Status)
		}
		if f.Reason != "" {
			text += ": " + line(f.Reason)
		}
		logs = append(logs, text)
	}
	if j.Replica != "" {
		logs = append(logs, fmt.Sprintf("job %s: %s runs it", j.Job, line(j.Replica)))
	}
	if j.Err != nil {
		logs = append(logs, fmt.Sprintf("job %s: %s", j.Job, line(j.Err.Error())))
	}
	return logs
}
