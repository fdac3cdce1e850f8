package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
)

// The functions of every program. The others are its jobs: a job's name cannot
// be one of these.
const (
	tickFunction   = "tick"   // looks after all jobs
	warmupFunction = "warmup" // is called before an instance gets work
)

// An invocation is the answer to the Functions host, which waits for this
// object: an empty body with status 200 would hang it until its time-out, and
// text would be a failure
// (https://learn.microsoft.com/azure/azure-functions/functions-custom-handlers#response-payload).
type invocation struct {
	Outputs     map[string]any
	Logs        []string
	ReturnValue any
}

// functions answers the Functions host. Nothing runs between its calls.
type functions struct {
	*app
	limits invocationLimits
}

// functionRoutes puts the functions before all other paths.
func (a *app) functionRoutes(rest http.Handler) http.Handler {
	f := &functions{app: a, limits: a.invocationLimits()}
	a.sched.Grace = f.limits.grace
	f.warnOfWork()
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", awake(rest))
	mux.Handle("/{function}", f.route(rest))
	mux.Handle("/", rest)
	return mux
}

// awake answers the host's probe, which comes again and again: the page, which a
// browser gets, would wait for the storage, and costs a read of each record.
func awake(page http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			page.ServeHTTP(w, r)
			return
		}
		reply(w, http.StatusOK, invocation{Outputs: map[string]any{}, Logs: []string{}, ReturnValue: "awake"})
	}
}

// warnOfWork names what this platform cannot do.
func (f *functions) warnOfWork() {
	for _, g := range f.sched.Singletons {
		f.log.Warn("a singleton does not run in Functions: nothing runs there between two calls", "singleton", g.Name)
	}
	for _, j := range f.sched.Jobs {
		if f.limits.run > 0 && j.Timeout > f.limits.run {
			f.log.Warn("never started: it may take longer than an invocation. functionTimeout in host.json, or SOLOIST_FUNCTION_TIMEOUT, says how long that is",
				"job", j.Name, "timeout", j.Timeout, "invocation", f.limits.run)
		}
	}
}

// route finds the function. Only the host can reach a loopback address, and it
// has no token; pages that a browser on this machine shows could too, so other
// sites are refused. Elsewhere anybody can.
func (f *functions) route(rest http.Handler) http.Handler {
	invoke := http.NewCrossOriginProtection().Handler(http.HandlerFunc(f.invoke))
	if !isLoopback(f.Addr) {
		invoke = f.admin(f.invoke)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name := functionName(r); {
		case f.isFunction(name) && r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			f.refuse(w, r, http.StatusMethodNotAllowed, errors.New("want POST"))
		case f.isFunction(name):
			invoke.ServeHTTP(w, r)
		case r.Method == http.MethodPost:
			f.refuse(w, r, http.StatusNotFound, fmt.Errorf("no such function: want %s", join(append([]string{tickFunction, warmupFunction}, f.names()...)...)))
		default:
			rest.ServeHTTP(w, r)
		}
	})
}

// functionName is the name of the function's folder, whose case nobody minds.
func functionName(r *http.Request) string { return strings.ToLower(r.PathValue("function")) }

func (f *functions) isFunction(name string) bool {
	return name == tickFunction || name == warmupFunction || slices.Contains(f.names(), name)
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// refuse answers a call that nothing is done about. The host drops the body, so
// the log has it too.
func (f *functions) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	f.log.Warn("call refused", "method", r.Method, "path", r.URL.Path, "code", code, "error", err)
	reply(w, code, invocation{Outputs: map[string]any{}, Logs: []string{line(err.Error())}})
}

func (f *functions) invoke(w http.ResponseWriter, r *http.Request) {
	name := functionName(r)
	call, code, err := readCall(w, r)
	if err != nil {
		f.refuse(w, r, code, err)
		return
	}
	patience := http.NewResponseController(w) // a run takes as long as it takes
	patience.SetReadDeadline(time.Time{})
	patience.SetWriteDeadline(time.Time{})
	ctx, cancel := f.context(r)
	defer cancel()
	var o upshot
	switch {
	case name == warmupFunction:
	case name == tickFunction:
		o = f.wake(ctx, soloist.Wake{Tick: call.tick})
	case call.http:
		o = f.runNow(ctx, name, call.id)
	default:
		o = f.wake(ctx, soloist.Wake{Jobs: []string{name}, Tick: call.tick})
	}
	f.answer(w, name, call, o)
}

// context is that of one invocation. The host does not cancel one, and a
// connection that breaks is no reason to abandon a run: a stop of this process
// is, and the instant at which the host would kill it.
func (f *functions) context(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	unhook := context.AfterFunc(f.serving(), cancel)
	release := cancel
	if f.limits.run > 0 {
		ctx, release = context.WithTimeout(ctx, f.limits.run)
	}
	return ctx, func() { unhook(); release(); cancel() }
}

// An upshot is what an invocation came to.
type upshot struct {
	jobs   []ticked
	next   time.Time
	logs   []string
	failed bool // a run failed, or a job could not be looked after
	busy   bool // another run has the job that was to run by hand
}

// wake does what is due.
func (f *functions) wake(ctx context.Context, wake soloist.Wake) upshot {
	report, err := f.sched.RunWake(ctx, wake)
	if err != nil {
		f.log.Error("not all jobs could be looked after", "error", err)
	}
	o := upshot{next: report.Next, failed: err != nil}
	overrun := f.sched.Health().Overrun
	for _, j := range report.Jobs {
		o.failed = o.failed || failed(j)
		if cause := overrun[j.Job]; cause != nil {
			j = soloist.JobReport{Job: j.Job, Ran: j.Ran, Next: j.Next, Err: errors.New(goesOn(cause))}
			o.failed = true
		}
		o.jobs = append(o.jobs, newTicked(j))
		o.logs = append(o.logs, reportLines(j)...)
	}
	return o
}

// runNow runs one job by hand.
func (f *functions) runNow(ctx context.Context, name, request string) upshot {
	j := soloist.JobReport{Job: name}
	fate, err := f.sched.RunNow(ctx, name, request)
	if err == nil {
		j.Ran = []soloist.Fate{fate}
	} else {
		j.Err = err
		f.log.Warn("not run by hand", "job", name, "request", request, "error", err)
	}
	return upshot{jobs: []ticked{newTicked(j)}, logs: reportLines(j), failed: err != nil || failed(j), busy: errors.Is(err, soloist.ErrHeld)}
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
	if o.failed && f.FunctionFailure == failError {
		code = http.StatusInternalServerError
		f.log.Error("the invocation fails, as SOLOIST_FUNCTION_FAILURE says", "function", name, "invocation", c.id, "logs", strings.Join(o.logs, "; "))
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
	case o.failed:
		code = http.StatusInternalServerError
	}
	text, _ := json.Marshal(body)
	return map[string]any{"statusCode": fmt.Sprint(code), "body": string(text), "headers": map[string]string{"Content-Type": "application/json"}}
}

func newTicked(j soloist.JobReport) ticked {
	t := ticked{Job: j.Job, Ran: plainFates(j.Ran), Holder: j.Holder, Next: utc(j.Next)}
	if j.Err != nil {
		t.Error = line(j.Err.Error())
	}
	return t
}

func reportLines(j soloist.JobReport) (logs []string) {
	for _, f := range j.Ran {
		text := fmt.Sprintf("job %s: tick %s %s", j.Job, f.Tick.Format(time.RFC3339), f.Status)
		if f.Request != "" {
			text = fmt.Sprintf("job %s: request %s %s", j.Job, f.Request, f.Status)
		}
		if f.Reason != "" {
			text += ": " + line(f.Reason)
		}
		logs = append(logs, text)
	}
	if j.Holder != "" {
		logs = append(logs, fmt.Sprintf("job %s: %s runs it", j.Job, j.Holder))
	}
	if j.Err != nil {
		logs = append(logs, fmt.Sprintf("job %s: %s", j.Job, line(j.Err.Error())))
	}
	return logs
}

// newRequest names a run by hand whose caller has not.
func newRequest() string { return "http-" + strings.ToLower(rand.Text()[:12]) }
