//go:build unix

package functions_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

const (
	yearly   = "0 0 1 1 *"     // the schedule of most tests: no tick comes in their time
	patience = 2 * time.Minute // how long a test waits for what has to come, on any machine
	noTick   = `{"Data":{"timer":{"Schedule":{"AdjustForDST":true},"ScheduleStatus":null,"IsPastDue":true}},"Metadata":{}}`
)

// storage is a store that the programs of one test share.
func storage(t *testing.T) proctest.Storage {
	s := proctest.Directory(t.TempDir())
	s.Lease = 5 * time.Second // a busy machine renews it too
	return s
}

// soloistHost is a started host with the program of these tests.
func soloistHost(t *testing.T, storage proctest.Storage, env ...string) *functions.Host {
	t.Helper()
	nightly.Only(t, "starts processes as the Functions host does")
	usual := []string{proctest.As("program"), "SOLOIST_APP=test", scheduleEnv + "=" + yearly, takesEnv + "=0s"}
	h := &functions.Host{Program: proctest.Self(), Env: slices.Concat(usual, storage.Env(), env)}
	start(t, h)
	t.Cleanup(func() { h.Kill() })
	return h
}

func start(t *testing.T, h *functions.Host) {
	t.Helper()
	if err := h.Start(t.Context()); err != nil {
		t.Fatalf("%v: %q", err, h.Lines())
	}
}

// has reports whether the program has printed this.
func has(h *functions.Host, text string) bool {
	return slices.ContainsFunc(h.Lines(), func(line string) bool { return strings.Contains(line, text) })
}

// await waits until the program has printed this.
func await(t *testing.T, h *functions.Host, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%q", h.Lines())
		}
	}()
	proctest.Poll(t, text, patience, func() bool { return has(h, text) })
}

// An outcome is one in the program's answer.
type outcome struct {
	Tick            time.Time
	Request, Status string
	Attempt         int
}

// invoke calls a function, and returns the runs of the job of its name.
func invoke(t *testing.T, h *functions.Host, function, payload string) (ran []outcome, jobs int, res functions.Result) {
	t.Helper()
	res, err := h.Invoke(t.Context(), function, payload)
	var told struct {
		App  string
		Jobs []struct {
			Job, Error string
			Ran        []outcome
		}
	}
	if err == nil {
		err = json.Unmarshal(res.ReturnValue, &told)
	}
	if err != nil || told.App != "test" {
		t.Errorf("%s: got %+v, %v", function, told, err)
	}
	for _, j := range told.Jobs {
		if j.Error != "" {
			t.Errorf("%s: got the error %s", function, j.Error)
		}
		if j.Job == function {
			ran = j.Ran
		}
	}
	return ran, len(told.Jobs), res
}

// Timers have the jobs run that are due. An HTTP trigger runs its job, once for each invocation, and its answer says what became of
// the run.
func TestProgramAnswersTheHost(t *testing.T) {
	t.Parallel()
	h := soloistHost(t, storage(t))
	for function, want := range map[string]int{"tick": 5, "Tick": 5, "work": 1} {
		if _, jobs, res := invoke(t, h, function, noTick); jobs != want || !slices.Contains(res.Logs, "the timer is past due") {
			t.Errorf("%s: got %d jobs and the logs %q", function, jobs, res.Logs)
		}
	}
	if _, err := h.Invoke(t.Context(), "warmup", `{"Data":{"warmupContext":{}},"Metadata":{}}`); err != nil {
		t.Error(err)
	}
	for _, call := range []struct{ job, status, code string }{{"work", "succeeded", "200"}, {"work", "succeeded", "200"}, {"broke", "failed", "500"}} {
		ran, _, res := invoke(t, h, call.job, byHTTP)
		if len(ran) != 1 || ran[0].Request != res.ID || ran[0].Status != call.status || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"`+call.code+`"`) {
			t.Errorf("%s: got %+v and %s, want the request %s", call.job, ran, res.Outputs["res"], res.ID)
		}
	}
	if has(h, "stderr: ") || !has(h, "a singleton does not run in Functions") { // to the host, standard error is errors
		t.Errorf("got %q", h.Lines())
	}
}

// byHTTP is what an HTTP trigger sends.
const byHTTP = `{"Data":{"req":{"Url":"http://localhost/api/job","Method":"POST","Headers":{},"Body":"hello"}},"Metadata":{}}`

// A handler is killed while it runs a job. The next invocation gives the tick its
// outcome, or its next attempt.
func TestKilledMidRun(t *testing.T) {
	t.Parallel()
	for job, attempt := range map[string]int{"work": 0, "again": 2} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			store := storage(t)
			tick := time.Now().UTC().Add(3 * time.Second).Truncate(time.Second) // there is no other within an hour
			h := soloistHost(t, store, scheduleEnv+"="+tick.Format("5 4 * * * *"), takesEnv+"=1h")
			time.Sleep(time.Until(tick))
			over := make(chan error)
			payload := fmt.Sprintf(`{"Data":{"timer":{"ScheduleStatus":{"Next":%q}}}}`, tick.Format("2006-01-02T15:04:05-07:00"))
			go func() { _, err := h.Invoke(t.Context(), job, payload); over <- err }()
			await(t, h, "begin "+job)
			h.Kill()
			if err := <-over; err == nil {
				t.Error("the handler is dead, and its invocation has succeeded")
			}
			start(t, h)
			time.Sleep(store.Lease + 100*time.Millisecond)
			ran, _, _ := invoke(t, h, job, noTick)
			if attempt > 0 {
				if len(ran) != 1 || ran[0].Attempt != attempt || !ran[0].Tick.Equal(tick) || ran[0].Status != "succeeded" {
					t.Errorf("got %+v; want attempt %d", ran, attempt)
				}
				return
			}
			if len(ran) != 0 {
				t.Errorf("got %+v: it is started at most once", ran)
			}
			if got := store.Record(t, "test/"+job).History; len(got) == 0 || got[0].Status != "abandoned" || !got[0].Tick.Equal(tick) {
				t.Errorf("got the outcomes %+v", got)
			}
		})
	}
}

// A run that has stalled and goes on ends the process, with the code by which the host starts it again without counting a crash.
func TestOverrun(t *testing.T) {
	t.Parallel()
	h := soloistHost(t, storage(t))
	if _, err := h.Invoke(t.Context(), "deaf", byHTTP); err == nil {
		t.Error("the process goes, and its invocation has succeeded")
	}
	if code := h.Code(); code != 200 || !has(h, "the process exits") {
		t.Errorf("got the code %d, %q", code, h.Lines())
	}
	start(t, h)
	invoke(t, h, "work", noTick)
}
