package functions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/web"
)

// A result is what an invocation came to.
type result struct {
	jobs   []view.Ticked
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
func (o result) fails(c call, setting app.Failure) bool {
	if c.http {
		return (o.failed || o.unseen) && !o.busy && setting == app.FailError
	}
	return o.unseen || o.failed && setting == app.FailError
}

// wake does what is due.
func (f *Handler) wake(ctx context.Context, wake soloist.Wake) result {
	if err := f.app.Before.Run(ctx); err != nil {
		return f.early(err)
	}
	report, err := f.app.Scheduler.RunDue(ctx, wake)
	if err != nil {
		f.app.Log.Error("not all jobs could be looked after", "error", err)
	} else {
		f.lookAtClock(ctx)
	}
	o := result{next: report.Next, unseen: err != nil}
	overrun := f.app.Scheduler.Health().Overrun
	for _, j := range report.Jobs {
		o.failed = o.failed || view.Failed(j)
		if cause := overrun[j.Job]; cause != nil {
			j = soloist.JobReport{Job: j.Job, Ran: j.Ran, Next: j.Next, Err: errors.New(view.Overrun(cause))}
			o.unseen = true
		}
		o.jobs = append(o.jobs, view.NewTicked(j))
		o.logs = append(o.logs, reportLines(j)...)
	}
	return o
}

// early is the answer of an invocation while no job may start.
func (f *Handler) early(err error) result {
	f.app.Log.Error("no job is started", "error", err)
	return result{logs: []string{format.Line(err.Error())}, unseen: true}
}

// warmupPatience is within what the platform waits for a warm-up.
const warmupPatience = 10 * time.Second

// warm does what would keep the first call waiting: it reads each record, and so
// has a token and a connection. A new instance is of use without them too, so no
// trouble fails it.
func (f *Handler) warm(ctx context.Context) (o result) {
	ctx, cancel := context.WithTimeout(ctx, warmupPatience)
	defer cancel()
	all, err := f.app.Scheduler.Status(ctx)
	for _, j := range all {
		err = errors.Join(err, j.Err)
	}
	if err != nil {
		f.app.Log.Warn("this instance is not warm: not all records could be read", "error", err)
		return result{logs: []string{format.Line(err.Error())}}
	}
	return result{logs: []string{format.Plural(len(all), "record") + " read"}}
}

func (f *Handler) lookAtClock(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock.Look(ctx)
}

// answer tells the host. It drops the body of any status but 200; what went
// wrong is in the log of the scheduler too.
func (f *Handler) answer(w http.ResponseWriter, name string, c call, o result) {
	if c.pastDue {
		o.logs = append([]string{"the timer is past due"}, o.logs...)
	}
	body := view.New(f.app, o.jobs)
	body.Next = format.UTC(o.next)
	in := invocation{Outputs: map[string]any{}, Logs: append([]string{}, o.logs...), ReturnValue: body}
	if c.http {
		in.Outputs["res"] = httpOutput(o, body)
	}
	code := http.StatusOK
	if o.fails(c, f.app.Settings.FunctionFailure) {
		code = http.StatusInternalServerError
		f.app.Log.Error("the invocation fails", "function", name, "invocation", c.id, "logs", strings.Join(o.logs, "; "))
	}
	web.Reply(w, code, in)
}

// httpOutput is what the host answers to whoever called the HTTP trigger, by the
// output binding "res".
func httpOutput(o result, body any) map[string]any {
	code := http.StatusOK
	switch {
	case o.busy:
		code = http.StatusConflict
	case o.failed, o.unseen:
		code = http.StatusInternalServerError
	}
	var text strings.Builder
	if err := format.WriteJSON(&text, body, ""); err != nil { // an empty body would look like an answer
		code = http.StatusInternalServerError
		fmt.Fprintf(&text, `{"error":%q}`, "the answer cannot be written as JSON: "+format.Line(err.Error()))
	}
	return map[string]any{"statusCode": fmt.Sprint(code), "body": strings.TrimSuffix(text.String(), "\n"), "headers": map[string]string{"Content-Type": "application/json"}}
}

func reportLines(j soloist.JobReport) (logs []string) {
	for _, f := range j.Ran {
		text := fmt.Sprintf("job %s: tick %s %s", j.Job, f.Tick.Format(time.RFC3339), f.Status)
		if f.Request != "" {
			text = fmt.Sprintf("job %s: request %s %s", j.Job, format.Line(f.Request), f.Status)
		}
		if f.Reason != "" {
			text += ": " + format.Line(f.Reason)
		}
		logs = append(logs, text)
	}
	if j.Replica != "" {
		logs = append(logs, fmt.Sprintf("job %s: %s runs it", j.Job, format.Line(j.Replica)))
	}
	if j.Err != nil {
		logs = append(logs, fmt.Sprintf("job %s: %s", j.Job, format.Line(j.Err.Error())))
	}
	return logs
}
