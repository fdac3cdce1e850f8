// Package functions is a program as an app of Azure Functions: it answers the
// Functions host, and writes and compares the directory that is deployed.
package functions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/watch"
	"github.com/soloist-go/soloist/host/internal/web"
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

// A Handler answers the Functions host. Nothing runs between its calls.
type Handler struct {
	app    *app.App
	guard  *web.Guard
	limits Limits
	guess  error           // why the limits are a guess
	life   context.Context // of serve: its end ends the runs

	// Awake is called in parallel with each invocation, which does not wait long for it. Nil: nothing is called.
	Awake func(context.Context)

	mu    sync.Mutex
	clock *watch.Clock // checked after each wake-up: the store's answers show the skew
}

// NewHandler is for a program that serves until life ends.
func NewHandler(life context.Context, a *app.App, guard *web.Guard) *Handler {
	limits, guess := LimitsOf(a)
	a.FitLead(patience(a, limits))
	return &Handler{app: a, guard: guard, limits: limits, guess: guess, life: life,
		clock: watch.NewClock(a.Log, a.Skew, func(context.Context) bool { return true })}
}

// Around puts the functions before all other paths.
func (f *Handler) Around(rest http.Handler) http.Handler {
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
		web.Reply(w, http.StatusOK, invocation{Outputs: map[string]any{}, Logs: []string{}, ReturnValue: "awake"})
	}
}

// Warn logs what this platform cannot do, and what is deployed and is not what
// the jobs need. It returns the latter.
func (f *Handler) Warn() (deployed []string) {
	if f.guess != nil {
		WarnOfGuess(f.app.Log, f.guess)
	}
	for _, g := range f.app.Scheduler.Singletons {
		f.app.Log.Warn("a singleton does not run in Functions: nothing runs there between two calls", "singleton", g.Name)
	}
	if f.app.Settings.Sweep != 0 {
		f.app.Log.Warn("SOLOIST_SWEEP has no effect in Functions: nothing runs there between two calls; the command sweep does it from elsewhere")
	}
	for _, text := range TooLong(f.app, f.limits) {
		f.app.Log.Error(text + ": functionTimeout in host.json, or SOLOIST_FUNCTION_TIMEOUT, says how long that is")
	}
	return checkDeployed(f.app)
}

// route finds the function. Only the host can reach a loopback address, and it
// has no token. Pages that a browser on this machine shows could too, so other
// sites are refused. On another address a call needs the admin's token.
func (f *Handler) route(rest http.Handler) http.Handler {
	call := http.NewCrossOriginProtection().Handler(http.HandlerFunc(f.call))
	if !f.guard.Local() {
		call = f.guard.Admin(f.call)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost || slices.Contains(functionsOf(f.app), functionName(r)) {
			call.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// call invokes the function. Only a caller that may invoke one learns which
// functions there are.
func (f *Handler) call(w http.ResponseWriter, r *http.Request) {
	switch {
	case !slices.Contains(functionsOf(f.app), functionName(r)):
		f.refuse(w, r, http.StatusNotFound, fmt.Errorf("no such function: want %s", format.Join(functionsOf(f.app)...)))
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		f.refuse(w, r, http.StatusMethodNotAllowed, errors.New("want POST"))
	default:
		f.invoke(w, r)
	}
}

// functionName is the name of the function's folder in lower case: the case does not matter.
func functionName(r *http.Request) string { return strings.ToLower(r.PathValue("function")) }

// refuse answers a call that nothing is done about. The host drops the body, so
// the log has it too, as far as the limit of refusals goes.
func (f *Handler) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	f.guard.Refused(r, "call refused", "method", format.Brief(r.Method), "code", code, "error", err)
	web.Reply(w, code, invocation{Outputs: map[string]any{}, Logs: []string{format.Line(err.Error())}})
}

func (f *Handler) invoke(w http.ResponseWriter, r *http.Request) {
	name := functionName(r)
	call, code, err := readCall(w, r, name)
	if err != nil {
		f.refuse(w, r, code, err)
		return
	}
	patience := http.NewResponseController(w) // a run takes as long as it takes
	patience.SetReadDeadline(time.Time{})
	patience.SetWriteDeadline(time.Time{})
	ctx, cancel := f.context(r)
	defer cancel()
	defer f.awake()()
	var o result
	switch {
	case name == warmupFunction:
		o = f.warm(ctx)
	case name == alarmFunction, name == tickFunction && f.app.Alarm != nil:
		o = f.answerAlarm(ctx, &call)
	case name == tickFunction:
		o = f.wake(ctx, soloist.Wake{Tick: call.tick})
	case call.http:
		o = f.forOne(ctx, func() result { return f.runNow(ctx, name, call.id) })
	default:
		o = f.forOne(ctx, func() result { return f.wake(ctx, soloist.Wake{Jobs: []string{name}, Tick: call.tick}) })
	}
	f.answer(w, name, call, o)
}

// awakeTime bounds how long an invocation waits for Awake: the platform may stop this process
// as soon as it has its answer.
const awakeTime = 2 * time.Second

// awake calls Awake in the background. done waits for it.
func (f *Handler) awake() (done func()) {
	if f.Awake == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(f.life)
	var all sync.WaitGroup
	all.Go(func() { f.Awake(ctx) })
	return func() {
		defer cancel()
		defer time.AfterFunc(awakeTime, cancel).Stop()
		all.Wait()
	}
}

// context is the context of one invocation. The host does not cancel one, and a
// broken connection is no reason to abandon a run: only a stop of this process
// is, and the instant at which the host would kill it.
func (f *Handler) context(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	unhook := context.AfterFunc(f.life, cancel)
	release := cancel
	if f.limits.Run > 0 {
		ctx, release = context.WithTimeout(ctx, f.limits.Run)
	}
	return ctx, func() { unhook(); release(); cancel() }
}
