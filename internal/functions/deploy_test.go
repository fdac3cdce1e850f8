//go:build unix

package functions_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

// What the program of this repository writes, the host can run; and the files
// that the repository has for the host are the ones that it writes.
func TestDeployment(t *testing.T) {
	nightly.Only(t, "builds and starts a program")
	t.Parallel()
	root, dir := filepath.Join("..", ".."), filepath.Join(t.TempDir(), "app")
	program := proctest.Build(t, "jobs", false)
	if out, err := exec.Command(program, "functions", dir, "--plan", "other").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for ours, theirs := range map[string]string{"host.json": "host.json", "function.json": "tick/function.json"} {
		got, _ := os.ReadFile(filepath.Join(root, ours))
		want, err := os.ReadFile(filepath.Join(dir, theirs))
		want = bytes.Replace(want, []byte(`Path": "jobs"`), []byte(`Path": "jobs/jobs"`), 1) // go build puts it beside its sources
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, want what the command functions writes, %s, %v", ours, got, want, err)
		}
	}
	h := loaded(t, dir, append(storage(t).Env(), "SOLOIST_APP=test", "HEARTBEAT_URL=")...)
	start(t, h)
	if has(h, "is not what the jobs need") {
		t.Errorf("what was written just now does not fit: %q", h.Lines())
	}
	// A setting changes a schedule, of which the timers know nothing.
	other := loaded(t, dir, append(h.Env, "SOLOIST_JOB_PRUNE_SCHEDULE=30 4 * * *")...)
	start(t, other)
	await(t, other, `does not fire at the ticks of the job, \"30 4 * * *\"`)
	for name, f := range h.Functions {
		if b := f.Bindings[0]; b.Type != "timerTrigger" || b.Direction != "in" || b.RunOnStartup || len(strings.Fields(b.Schedule)) != 6 {
			t.Errorf("%s: got %+v", name, b)
		}
		if (f.Retry != nil) != (name == "prune") {
			t.Errorf("%s: got the policy %+v; prune's next call is a day away, and those of the others are near", name, f.Retry)
		}
		if _, err := h.Invoke(t.Context(), name, noTick); err != nil {
			t.Errorf("%v: %q", err, h.Lines())
		}
	}
	if has(h, "is never started") || h.Timeout < 10*time.Minute {
		t.Errorf("a job does not fit into an invocation of %s: %q", h.Timeout, h.Lines())
	}
}

// loaded is a deployed app, whose handler goes with the test.
func loaded(t *testing.T, dir string, env ...string) *functions.Host {
	t.Helper()
	h, err := functions.Load(dir, env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if h.Process != nil {
			h.Kill()
		}
	})
	return h
}

// The root of the repository is an app as it is, for func start: the host finds one function there, which calls the program for
// all jobs. function.json at the root alone is read by no host: the one of the function is a link to it.
func TestRepositoryIsAnApp(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	h := loaded(t, root, append(storage(t).Env(), "SOLOIST_APP=test", scheduleEnv+"="+yearly, takesEnv+"=0s", proctest.As("program"))...)
	if len(h.Functions) != 1 {
		t.Errorf("got the functions %+v", h.Functions)
	}
	if b := h.Functions["tick"].Bindings; len(b) != 1 || b[0].Type != "timerTrigger" || b[0].Schedule != "0 * * * * *" || b[0].RunOnStartup {
		t.Errorf("got %+v", b)
	}
	if link, err := os.Readlink(filepath.Join(root, "tick", "function.json")); err != nil || link != filepath.Join("..", "function.json") {
		t.Errorf("tick/function.json is %q, %v, want a link to the one at the root", link, err)
	}
	if got := strings.TrimPrefix(h.Program, root+"/"); got != "jobs/jobs" {
		t.Errorf("got the program %q, want what go build -o jobs/ ./jobs makes", got)
	}
	h.Program = proctest.Self()
	start(t, h)
	if _, err := h.Invoke(t.Context(), "tick", noTick); err != nil || has(h, "is not what the jobs need") {
		t.Errorf("got %v, %q", err, h.Lines())
	}
}
