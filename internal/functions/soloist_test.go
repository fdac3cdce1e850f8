//go:build unix

package functions_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// The first invocation ever runs the tick that it comes for.
func TestFirstInvocation(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"tick", "work"} {
		tick, schedule := soon(2 * time.Second)
		h, _ := soloistHost(t, storage(t), schedule)
		time.Sleep(time.Until(tick))
		v, _ := invoke(t, h, function, timer(tick))
		if ran, _, _ := v.of("work"); len(ran) != 1 || !ran[0].Tick.Equal(tick) || ran[0].Status != "succeeded" {
			t.Errorf("%s: got %+v, want a run of %s", function, ran, tick)
		}
	}
}

// A catch-up of a timer names a tick that is over: what is due by the records is
// done.
func TestPastDue(t *testing.T) {
	t.Parallel()
	for after := 4 * time.Second; ; after *= 2 {
		tick, schedule := soon(after)
		h, _ := soloistHost(t, storage(t), schedule)
		old := tick.Add(-time.Hour)
		past := functions.Timer{Next: old, Last: old, PastDue: true}.Payload()
		v, _ := invoke(t, h, "work", past)
		if time.Now().After(tick) && after < time.Minute {
			continue // a busy machine: the job may be as old as the tick
		}
		if ran, _, err := v.of("work"); len(ran) != 0 || err != "" {
			t.Errorf("a new job owes nothing: %+v, %s", ran, err)
		}
		time.Sleep(time.Until(tick))
		v, _ = invoke(t, h, "work", past)
		if ran, _, _ := v.of("work"); len(ran) != 1 || ran[0].Status != "succeeded" || !ran[0].Tick.Equal(tick) {
			t.Errorf("got %+v, want the tick that is due", ran)
		}
		return
	}
}

// A run that does not fit is not begun; one that is too long is ended before the
// host would kill the process.
func TestDeadline(t *testing.T) {
	t.Parallel()
	tick, schedule := soon(5 * time.Second)
	h, c := soloistHost(t, storage(t), schedule, takesEnv+"=1h")
	os.WriteFile(filepath.Join(h.Root, "host.json"), []byte("\ufeff"+`{"version":"2.0","functionTimeout":"00:00:10"}`), 0o644)
	pid := h.Pid()
	h.Kill() // the file is read at the start
	wantRestart(t, h, pid, 1)
	h.Timeout, pid = 30*time.Second, h.Pid() // on a busy machine it is late
	time.Sleep(time.Until(tick))
	begin := time.Now()
	v, _ := invoke(t, h, "work", timer(tick))
	if ran, _, _ := v.of("work"); len(ran) != 1 || ran[0].Status != "abandoned" || ran[0].Reason != "out of time, stopped" {
		t.Errorf("got %+v", v)
	}
	if took := time.Since(begin); took < 3*time.Second || took > 20*time.Second {
		t.Errorf("it was told to stop after %s", took)
	}
	if !c.has("ended work@") || h.Pid() != pid {
		t.Errorf("it was killed: %q", c.all())
	}
	v, res := invoke(t, h, "long", functions.HTTP("POST", "http://localhost/api/long", ""))
	if _, _, err := v.of("long"); !strings.Contains(err, "not started: it may take 1h0m0s") || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"500"`) {
		t.Errorf("got %+v", v)
	}
	if !c.has("is never started") {
		t.Errorf("nothing is said of a job that never fits: %q", c.all())
	}
}
