package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/soloist-go/soloist"
)

// tickFunction is the function whose timer wakes the program up.
const tickFunction = "tick"

// maxPayload bounds what the host sends: a timer's payload has a few hundred bytes.
const maxPayload = 1 << 20

// An invocation is the answer to the Functions host, which waits for this
// object: an empty body with status 200 would hang it until its time-out
// (https://learn.microsoft.com/azure/azure-functions/functions-custom-handlers#response-payload).
type invocation struct {
	Outputs     map[string]any
	Logs        []string
	ReturnValue any
}

// tick does what is due. What went wrong is told in the logs, with status 200:
// the record has it, and the host would drop the logs of any other answer.
func (a *app) tick(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxPayload)); err != nil {
		reply(w, http.StatusRequestEntityTooLarge, invocation{Logs: []string{fmt.Sprintf("a payload of up to %d bytes is wanted: %v", maxPayload, err)}})
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a run takes as long as it takes
	// The host does not cancel an invocation, and a connection that breaks is no
	// reason to abandon a run: a stop of this process is.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(a.serving(), cancel)()
	report, err := a.sched.RunDue(ctx)
	answer := invocation{Outputs: map[string]any{}, Logs: []string{}}
	for _, j := range report.Jobs {
		answer.Logs = append(answer.Logs, reportLines(j)...)
	}
	if err != nil {
		a.log.Error("not all jobs could be looked after", "error", err)
	}
	reply(w, http.StatusOK, answer)
}

func reportLines(j soloist.JobReport) (logs []string) {
	for _, f := range j.Ran {
		text := fmt.Sprintf("job %s: tick %s %s", j.Job, f.Tick.Format(time.RFC3339), f.Status)
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
