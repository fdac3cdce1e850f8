//go:build unix

package functions_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
)

// yearly is the schedule of most tests: no tick comes in their time.
const yearly = "0 0 1 1 *"

// A told is what the program's ReturnValue has.
type told struct {
	App  string
	Jobs []struct {
		Job     string
		Ran     []outcome
		Replica string
		Next    time.Time
		Error   string
	}
	Next time.Time
}

type outcome struct {
	Tick           time.Time
	Request        string
	Status, Reason string
	Attempt        int
	Replica        string
}

// of returns what is told of one job.
func (v told) of(name string) (ran []outcome, holder, err string) {
	for _, j := range v.Jobs {
		if j.Job == name {
			return j.Ran, j.Replica, j.Error
		}
	}
	return nil, "", "not told"
}

// storage is a store that the programs of one test share.
func storage(t *testing.T) proctest.Storage {
	s := proctest.Directory(t.TempDir())
	s.Lease = 5 * time.Second // a busy machine renews it too
	return s
}

// soloistHost starts a host with the program.
func soloistHost(t *testing.T, storage proctest.Storage, env ...string) (*functions.Host, *console) {
	t.Helper()
	return started(t, "program", slices.Concat(storage.Env(), []string{"SOLOIST_APP=test", scheduleEnv + "=" + yearly, takesEnv + "=0s"}, env)...)
}

// invoke expects an answer that the host understands.
func invoke(t *testing.T, h *functions.Host, function string, payload []byte) (told, functions.Result) {
	t.Helper()
	res, err := h.Invoke(t.Context(), function, payload)
	if err != nil {
		t.Errorf("%s: %v", function, err)
		return told{}, res
	}
	var v told
	if err := json.Unmarshal(res.ReturnValue, &v); err != nil || res.Outputs == nil || res.Logs == nil {
		t.Errorf("%s: got %+v, %v", function, res, err)
	}
	return v, res
}

// soon is a tick so long from now, and the setting of a schedule that has no
// other within an hour.
func soon(after time.Duration) (tick time.Time, schedule string) {
	tick = time.Now().UTC().Add(after + time.Second).Truncate(time.Second)
	return tick, scheduleEnv + "=" + tick.Format("5 4 * * * *")
}

func timer(tick time.Time) []byte { return functions.Timer{Next: tick}.Payload() }

func TestProgramAnswersTheHost(t *testing.T) {
	t.Parallel()
	h, c := soloistHost(t, storage(t))
	for _, p := range []functions.Timer{{}, {Unwatched: true}, {PastDue: true, Last: time.Now(), Next: time.Now()}, {Retry: 2},
		{Next: time.Date(2026, 3, 5, 10, 5, 0, 0, time.FixedZone("", 3600))}} {
		for _, body := range [][]byte{p.Payload(), p.Camel()} {
			for _, function := range []string{"tick", "work", "Tick"} {
				v, res := invoke(t, h, function, body)
				jobs := 5
				if function == "work" {
					jobs = 1
				}
				if len(v.Jobs) != jobs || v.Next.IsZero() || v.App != "test" {
					t.Errorf("%s, %s: got %+v", function, body, v)
				}
				if past := slices.Contains(res.Logs, "the timer is past due"); past != p.PastDue {
					t.Errorf("%s: got the logs %q", body, res.Logs)
				}
			}
		}
	}
	if _, err := h.Invoke(t.Context(), "warmup", functions.Warmup()); err != nil {
		t.Error(err)
	}
	for _, line := range c.all() {
		if strings.HasPrefix(line, "error") || strings.HasPrefix(line, "warning") {
			t.Errorf("on stderr: %s", line)
		}
	}
	if !c.has("a singleton does not run in Functions") {
		t.Errorf("nothing is said of the singleton: %q", c.all())
	}
}

// An HTTP trigger runs its job, once for each invocation, and its answer says what became of the run.
func TestRunByHTTP(t *testing.T) {
	t.Parallel()
	h, _ := soloistHost(t, storage(t))
	for _, call := range []struct{ job, status, code string }{{"work", "succeeded", "200"}, {"work", "succeeded", "200"}, {"broke", "failed", "500"}} {
		v, res := invoke(t, h, call.job, functions.HTTP("POST", "http://localhost/api/"+call.job, "hello"))
		ran, _, _ := v.of(call.job)
		if len(ran) != 1 || ran[0].Request != res.ID || ran[0].Status != call.status || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"`+call.code+`"`) {
			t.Errorf("%s: got %+v and %s, want the request %s", call.job, v, res.Outputs["res"], res.ID)
		}
	}
}
