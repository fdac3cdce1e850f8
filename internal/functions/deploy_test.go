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
	app, err := functions.Load(dir, append(storage(t).Env(), "SOLOIST_APP=test", "HEARTBEAT_URL=")...)
	if err != nil || len(app.Skipped) > 0 {
		t.Fatalf("%v, skipped %q", err, app.Skipped)
	}
	c := watch(t, app.Host)
	start(t, app.Host, c)
	if c.has("is not what the jobs need") {
		t.Errorf("what was written just now does not fit: %q", c.all())
	}
	wantDrift(t, app.Host.Env, dir)
	for name, bindings := range app.Functions {
		if b := bindings[0]; b.Type != "timerTrigger" || b.Direction != "in" || b.RunOnStartup || len(strings.Fields(b.Schedule)) != 6 {
			t.Errorf("%s: got %+v", name, b)
		}
		if _, again := app.Retries[name]; again != (name == "prune") {
			t.Errorf("%s: got the policy %+v; prune's next call is a day away, and those of the others are near", name, app.Retries[name])
		}
		if _, err := app.Fire(t.Context(), name, functions.Timer{Name: bindings[0].Name, Unwatched: true}); err != nil {
			t.Errorf("%s: %v: %q", name, err, c.all())
		}
	}
	if c.has("is never started") {
		t.Errorf("a job does not fit into an invocation of %s: %q", app.Host.Timeout, c.all())
	}
	if app.Host.Timeout < 10*time.Minute {
		t.Errorf("got a time-out of %s", app.Host.Timeout)
	}
}

// The root of the repository is an app as it is, for func start: the host finds one function there, which calls the program for
// all jobs. function.json at the root alone is read by no host: the one of the function is a link to it.
func TestRepositoryIsAnApp(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	app, err := functions.Load(root, append(storage(t).Env(), "SOLOIST_APP=test", scheduleEnv+"="+yearly, takesEnv+"=0s", proctest.As("program"))...)
	if err != nil || len(app.Skipped) > 0 || len(app.Functions) != 1 {
		t.Fatalf("%v, functions %v, skipped %q", err, app.Functions, app.Skipped)
	}
	if b := app.Functions["tick"]; len(b) != 1 || b[0].Type != "timerTrigger" || b[0].Schedule != "0 * * * * *" || b[0].RunOnStartup {
		t.Errorf("got %+v", b)
	}
	if link, err := os.Readlink(filepath.Join(root, "tick", "function.json")); err != nil || link != filepath.Join("..", "function.json") {
		t.Errorf("tick/function.json is %q, %v, want a link to the one at the root", link, err)
	}
	if got := strings.TrimPrefix(app.Host.Command[0], root+"/"); got != "jobs/jobs" {
		t.Errorf("got the program %q, want what go build -o jobs/ ./jobs makes", got)
	}
	app.Host.Command = []string{proctest.Self()}
	c := watch(t, app.Host)
	start(t, app.Host, c)
	if _, err := app.Fire(t.Context(), "tick", functions.Timer{Name: app.Functions["tick"][0].Name}); err != nil || c.has("is not what the jobs need") {
		t.Errorf("got %v, %q", err, c.all())
	}
}

// wantDrift has a setting change a schedule, of which the timers know nothing.
func wantDrift(t *testing.T, env []string, dir string) {
	t.Helper()
	app, err := functions.Load(dir, append(env, "SOLOIST_JOB_PRUNE_SCHEDULE=30 4 * * *")...)
	if err != nil {
		t.Fatal(err)
	}
	c := watch(t, app.Host)
	start(t, app.Host, c)
	c.await(t, `does not fire at the ticks of the job, \"30 4 * * *\"`)
}
