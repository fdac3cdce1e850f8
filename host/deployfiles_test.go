package host_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
)

// moduleDir returns a directory within a module.
func moduleDir(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/reports\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "deploy")
}

func TestDeployFiles(t *testing.T) {
	environment(t)
	for kind, want := range map[string]string{"functions": "infra/modules/functions.bicep", "containerapp": "infra/jobs.bicep", "containerapp-job": "infra/jobs.bicep"} {
		dir := moduleDir(t)
		deploy := func(more ...string) result {
			return run(t.Context(), host.Program{Work: work()}, append([]string{"deploy-files", kind, dir, "--package", "./jobs"}, more...)...)
		}
		got := deploy()
		if got.code != 0 || !strings.Contains(got.out, want+"\n") || !strings.Contains(got.err, "singleton leader does not run there") || !strings.Contains(got.err, "demo: beat: ticks are nearer than 2m0s") {
			t.Errorf("%s: got %+v", kind, got)
		}
		if got := deploy(); got.code != 0 || !strings.HasPrefix(got.out, "all files are in "+dir) {
			t.Errorf("%s again: got %+v", kind, got)
		}
		if err := os.WriteFile(filepath.Join(dir, "azure.yaml"), []byte("name: mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := deploy(); got.code != 1 || !strings.Contains(got.err, "azure.yaml in "+dir+" would be overwritten") {
			t.Errorf("%s over a file of somebody's own: got %+v", kind, got)
		}
		if got := deploy("--overwrite"); got.code != 0 || !strings.Contains(got.out, "1 file in ") {
			t.Errorf("%s with --overwrite: got %+v", kind, got)
		}
	}
}

// A run that Flex Consumption may kill is warned of where the app is one of Functions.
func TestDeployFilesWarnOfLongRuns(t *testing.T) {
	environment(t)
	for kind, want := range map[string]bool{"functions": true, "containerapp": false, "containerapp-job": false} {
		got := run(t.Context(), host.Program{Work: jobs(soloist.Job{Name: "night", Timeout: time.Hour})}, "deploy-files", kind, moduleDir(t), "--package", "./jobs")
		if said := strings.Contains(got.err, "job night may take 1h0m0s: Flex Consumption takes"); got.code != 0 || said != want {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
}

func TestDeployFilesRefuses(t *testing.T) {
	environment(t)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "for what (functions, containerapp or containerapp-job), and into which directory?"},
		{[]string{"functions"}, 2, "for what"},
		{[]string{"vm", "DIR"}, 2, `KIND must be one of "functions"`},
		{[]string{"functions", "DIR"}, 1, "name it with --package"},
		{[]string{"functions", "DIR", "--package", "jobs"}, 1, `the main package is "jobs"`},
		{[]string{"functions", t.TempDir(), "--package", "."}, 1, "not within a Go module"},
	} {
		args := []string{"deploy-files"}
		for _, arg := range test.args {
			if arg == "DIR" {
				arg = moduleDir(t)
			}
			args = append(args, arg)
		}
		got := run(t.Context(), host.Program{Work: work()}, args...)
		if got.code != test.code || !strings.Contains(got.err, test.want) {
			t.Errorf("%q: got %+v, want %d and a word of %q", test.args, got, test.code, test.want)
		}
	}
}

// The program takes each setting that the files name, with the value that they
// give it.
func TestDeployFilesFitSettings(t *testing.T) {
	values := map[string]string{"app": "demo", "queueName": "demo-alarm", "storageUrl": "https://example.blob.core.windows.net/"}
	setting := regexp.MustCompile(`name: '(SOLOIST_\w+)'\s+value: ('[^']*'|\w+)`)
	for _, kind := range []string{"functions", "containerapp", "containerapp-job"} {
		dir := moduleDir(t)
		environment(t)
		if got := run(t.Context(), host.Program{Work: work()}, "deploy-files", kind, dir, "--package", "."); got.code != 0 {
			t.Fatalf("%s: got %+v", kind, got)
		}
		env := []string{"SOLOIST_STORAGE=https://example.blob.core.windows.net"}
		for _, name := range []string{"infra/jobs.bicep", "infra/modules/functions.bicep"} {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			for _, m := range setting.FindAllSubmatch(text, -1) {
				value, given := values[string(m[2])]
				if !given {
					value = strings.Trim(string(m[2]), "'")
				}
				env = append(env, string(m[1])+"="+strings.ReplaceAll(value, "${tickTimeout}", "1800"))
			}
		}
		environment(t, env...)
		got := run(t.Context(), host.Program{Work: work()}, "validate", "--json")
		if got.code != 0 || strings.Contains(got.out, "SOLOIST_") || len(env) < 4 {
			t.Errorf("%s: with %q got %+v", kind, env, got)
		}
	}
}
