package functions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/web"
)

// A result is what an invocation came to.
type result struct {
	report soloist.Report
	notes  []string // what else there is to say
	unseen bool     // a job could not be served, which no record says
	busy   bool     // another run has the job of a manual run
}

// failed reports whether a run failed, as its record says.
func (o *result) failed() bool { return slices.ContainsFunc(o.report.Jobs, view.Failed) }

// fails reports whether the platform is to see a failure. That a run failed is
// in its record, so it depends on the setting. Why a job could not be served is
// only in the log, and a retry by the platform helps, since
// the tick is still due; see passes for calls by an alarm. The caller of an HTTP
// trigger gets the answer itself.
func (o *result) fails(c call, setting app.Failure) bool {
	if c.http {
		return (o.failed() || o.unseen) && !o.busy && setting == app.FailError
	}
	return o.unseen || o.failed() && setting == app.FailError
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
	o := result{report: report, unseen: err != nil}
	overrun := f.app.Scheduler.Health().Overrun
	for i, j := range report.Jobs {
		if cause := overrun[j.Job]; cause != nil {
			report.Jobs[i] = soloist.JobReport{Job: j.Job, Ran: j.Ran, Next: j.Next, Err: errors.New(view.Overrun(cause))}
			o.unseen = true
		}
	}
	return o
}

// answerAlarm does what is due. A message of wake is left to the version that was deployed before it, if that is another one.
func (f *Handler) answerAlarm(ctx context.Context, c *call) result {
	hearMessage(f.app, c.message)
	o := f.passes(ctx)
	o.add(f, f.app.GiveBack(ctx, c.message, c.inserted))
	return o
}

// passes does what is due, waits for ticks that are due within the stay, and hands over to the alarm. If the alarm cannot
// be set, the invocation fails, and the host calls again: its message stays in the queue. Else the alarm comes as soon as a
// further call helps, whatever kept a job from being looked after, so the host does not call again.
func (f *Handler) passes(ctx context.Context) (o result) {
	var last atomic.Pointer[result]
	report, err := f.app.Passes(ctx, patience(f.app, f.limits), func() soloist.Report {
		one := f.wake(ctx, soloist.Wake{})
		last.Store(&one)
		return one.report
	})
	o = result{report: report, notes: last.Load().notes}
	o.add(f, err)
	return o
}

// forOne is an invocation that is about one job. With an alarm, its run is found if this process dies, and the alarm is
// set for what is left.
func (f *Handler) forOne(ctx context.Context, do func() result) (o result) {
	if f.app.Alarm == nil {
		return do()
	}
	err := f.app.Guarded(ctx, func() { o = do() })
	o.add(f, err)
	return o
}

// add adds what is wrong with the alarm.
func (o *result) add(f *Handler, err error) {
	if err != nil {
		f.app.Log.Error(format.Line(err.Error()))
		o.notes, o.unseen = append(o.notes, format.Line(err.Error())), true
	}
}

// early is the answer of an invocation while no job may start.
func (f *Handler) early(err error) result {
	f.app.Log.Error("no job is started", "error", err)
	return result{notes: []string{format.Line(err.Error())}, unseen: true}
}

// warmupPatience is within what the platform waits for a warm-up.
const warmupPatience = 10 * time.Second

// warm does what would keep the first call waiting: it reads each record, and so
// has a token and a connection. A new instance is of use without them too, so no
// trouble fails it.
func (f *Handler) warm(ctx context.Context) (o result) {
	ctx, cancel := context.WithTimeout(ctx, warmupPatience)
	defer cancel()
	all := f.app.Statuses(ctx)
	var err error
	for _, j := range all {
		err = errors.Join(err, j.Err)
	}
	o = result{notes: []string{format.Plural(len(all), "record") + " read"}}
	if f.app.Alarm != nil {
		o.add(f, f.app.SetAlarm(ctx))
	}
	o.unseen = false
	if err != nil {
		f.app.Log.Warn("this instance is not warm: not all records could be read", "error", err)
		return result{notes: []string{format.Line(err.Error())}}
	}
	return o
}

func (f *Handler) lookAtClock(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock.Look(ctx)
}

// answer answers the host. The host drops the body of any status but 200; what went
// wrong is in the log of the scheduler too.
func (f *Handler) answer(w http.ResponseWriter, name string, c call, o result) {
	logs := []string{}
	if c.pastDue {
		logs = append(logs, "the timer is past due")
	}
	for _, j := range o.report.Jobs {
		logs = append(logs, reportLines(j)...)
	}
	body := view.Ticks(f.app, o.report)
	in := invocation{Outputs: map[string]any{}, Logs: append(logs, o.notes...), ReturnValue: body}
	if c.http {
		in.Outputs["res"] = httpOutput(&o, body)
	}
	code := http.StatusOK
	if o.fails(c, f.app.Settings.FunctionFailure) {
		code = http.StatusInternalServerError
		f.app.Log.Error("the invocation fails", "function", name, "invocation", c.id, "logs", strings.Join(in.Logs, "; "))
	}
	web.Reply(w, code, in)
}

// httpOutput is what the host answers to the caller of the HTTP trigger, by the
// output binding "res".
func httpOutput(o *result, body any) map[string]any {
	code := http.StatusOK
	switch {
	case o.busy:
		code = http.StatusConflict
	case o.failed(), o.unseen:
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
		if f.Request != "" && event.BackfillOf(f.Request) == 0 {
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
