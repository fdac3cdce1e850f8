package host_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// deployed is what the command functions writes for these jobs.
func deployed(t *testing.T, work []soloist.Work, args ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	environment(t)
	write(t, work, stand(t), root, args...).wants(t, "functions", 0)
	return root
}

// A change is what has been done to files or settings since the deployment.
type change func(t *testing.T, root string) (env []string)

func settings(env ...string) change { return func(*testing.T, string) []string { return env } }

func edited(name, text string) change {
	return func(t *testing.T, root string) []string {
		file(t, filepath.Join(root, name), text)
		return []string{"NIGHTLY=0 30 2 * * *"}
	}
}

func timerFile(schedule string) string {
	return `{"bindings":[{"type":"timerTrigger","direction":"in","name":"timer","schedule":"` + schedule + `"}]}`
}

var nothing = settings()

func TestDrift(t *testing.T) {
	night, rerun, berlin := soloist.Job{Name: "night"}, soloist.Job{Name: "again", Interrupted: soloist.Rerun}, soloist.Job{Name: "berlin", TimeZone: "Europe/Berlin"}
	other := soloist.Job{Name: "other"}
	for _, test := range []struct {
		name    string
		written []soloist.Work // when the functions were
		args    []string
		now     []soloist.Work // nil: the same
		change  change
		says    string // empty: nothing
		fails   bool
	}{
		{"the same", jobs(night, rerun, berlin), nil, nil, nothing, "", false},
		{"one timer for all", jobs(night, rerun, berlin), []string{"--tick"}, nil, nothing, "", false},
		{"warmup", jobs(night), []string{"--warmup"}, nil, nothing, "", false},
		{"another text for the same ticks", jobs(night), nil, nil, edited("night/function.json", timerFile("0 30 2-2 * * 0-6")), "", false},
		{"an app setting", jobs(night), nil, nil, edited("night/function.json", timerFile("%NIGHTLY%")), "", false},
		{"byte order mark", jobs(night), nil, nil, edited("night/function.json", "\ufeff"+timerFile("0 30 2 * * *")), "", false},
		{"a schedule by a setting", jobs(night), nil, nil, settings("SOLOIST_JOB_NIGHT_SCHEDULE=0 4 * * *"),
			`function night: its timer, "0 30 2 * * *", does not fire at the ticks of the job, "0 4 * * *": run demo functions DIR`, true},
		{"a zone by a setting", jobs(night), nil, nil, settings("SOLOIST_JOB_NIGHT_TIMEZONE=Asia/Tokyo"),
			`does not fire at the ticks of the job, "30 2 * * *" in Asia/Tokyo`, true},
		{"a schedule by a setting, and tick", jobs(night, rerun), nil, nil, settings("SOLOIST_JOB_NIGHT_SCHEDULE=0 4 * * *"),
			`the function tick runs them, up to a minute late`, false},
		{"a job that is new", jobs(night), nil, jobs(night, other), nothing, "function other: the job has no timer, and there is no function tick: nothing runs its ticks", true},
		{"a job that is new, and tick", jobs(night, rerun), nil, jobs(night, rerun, other), nothing, "", false},
		{"a follower", jobs(night, soloist.Job{Name: "next", After: "night"}), nil, nil, nothing, "", false},
		{"a follower that is new", jobs(night), nil, jobs(night, soloist.Job{Name: "next", After: "night"}), nothing, "", false},
		{"a job that follows now", jobs(night, other), nil, jobs(night, soloist.Job{Name: "other", After: "night"}), nothing,
			`function other: its timer, "0 30 2 * * *", is not needed: the job follows night, whose timers run it`, true},
		{"a follower that is run again now", jobs(night, soloist.Job{Name: "next", After: "night"}), nil, jobs(night, soloist.Job{Name: "next", After: "night", Interrupted: soloist.Rerun}), nothing,
			"function next: the job needs the function tick (rerun)", true},
		{"a job that is gone", jobs(night, other), nil, jobs(night), nothing, "function other: no job has this name, so its calls are refused", false},
		{"a job that is run again now", jobs(night), nil, jobs(soloist.Job{Name: "night", Interrupted: soloist.Rerun}), nothing, "function night: the job needs the function tick too (rerun)", true},
		{"an HTTP trigger", jobs(night), nil, nil, edited("night/function.json", `{"bindings":[{"type":"httpTrigger","direction":"in","name":"req"},{"type":"http","direction":"out","name":"res"}]}`),
			"the job has no timer", true},
		{"a function that is disabled", jobs(night), nil, nil, edited("night/function.json", strings.Replace(timerFile("0 30 2 * * *"), "{", `{"disabled":true,`, 1)), "the job has no timer", true},
		{"a function that a setting disables", jobs(night), nil, nil, settings("AzureWebJobs.night.Disabled=1"), "the job has no timer", true},
		{"a function that a setting disables on Linux", jobs(night), nil, nil, settings("AzureWebJobs_night_Disabled=true"), "the job has no timer", true},
		{"a setting that is no schedule", jobs(night), nil, nil, func(t *testing.T, root string) []string {
			return append(edited("night/function.json", timerFile("%SECRET%"))(t, root), "SECRET=topsecret")
		}, `its timer, "%SECRET%", does not fire`, true},
		{"a function that is damaged", jobs(night, rerun), nil, nil, edited("night/function.json", "{"), "function night: its function.json cannot be read", true},
		{"a tick that is rare", jobs(night, rerun), nil, nil, edited("tick/function.json", timerFile("0 0 * * * *")), `function tick: its timer, "0 0 * * * *", is not that of each minute`, true},
		{"a time zone of the app", jobs(night), nil, nil, settings("WEBSITE_TIME_ZONE=W. Europe Standard Time"), `WEBSITE_TIME_ZONE is "W. Europe Standard Time", by which timers count, and they are written for UTC: remove that setting`, true},
		{"the time zone that timers have anyway", jobs(night), nil, nil, settings("WEBSITE_TIME_ZONE=UTC"), "", false},
		{"a time-out that is short", jobs(soloist.Job{Name: "night", Timeout: 9 * 60e9}), nil, nil, edited("host.json", `{"version":"2.0","functionTimeout":"00:05:00"}`),
			"job night is never started: it may take 9m0s, and of an invocation runs have 4m5s", true},
		{"a time-out of the host that is shorter", jobs(night), nil, nil, settings("SOLOIST_FUNCTION_TIMEOUT=2h"),
			"SOLOIST_FUNCTION_TIMEOUT is 2h0m0s, and the host kills the program when an invocation has lasted 10m0s: lower or remove that setting, or raise functionTimeout in host.json", true},
		{"a time-out of the host that a variable makes shorter", jobs(night), nil, nil, settings("SOLOIST_FUNCTION_TIMEOUT=8m", "AzureFunctionsJobHost__functionTimeout=00:05:00"),
			"an invocation has lasted 5m0s", true},
		{"a time-out of the host that is as long", jobs(night), nil, nil, settings("SOLOIST_FUNCTION_TIMEOUT=10m"), "", false},
		{"a run that is too long for Flex Consumption", jobs(soloist.Job{Name: "night", Timeout: 56 * 60e9}), nil, nil, settings("WEBSITE_SKU=FlexConsumption"),
			"job night may take 56m0s: Flex Consumption takes an instance away while a run goes on", false},
		{"a host without a time-out", jobs(night), nil, nil, settings("SOLOIST_FUNCTION_TIMEOUT=2h", "AzureFunctionsJobHost__functionTimeout=-1"), "", false},
		{"no app", jobs(night), nil, jobs(other), func(t *testing.T, root string) []string { os.Remove(filepath.Join(root, "host.json")); return nil }, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := deployed(t, test.written, test.args...)
			env := test.change(t, root)
			environment(t, append(env, "SOLOIST_STORAGE=memory:", "FUNCTIONS_APP_ROOT_PATH="+root)...)
			if test.now == nil {
				test.now = test.written
			}
			got := run(t.Context(), host.Program{Work: test.now}, "doctor")
			told := drift(got.out)
			if len(told) > 1 && test.name != "a tick that is rare" && test.name != "a function that is damaged" || (test.says == "") != (told == nil) || !strings.Contains(strings.Join(told, ""), test.says) {
				t.Errorf("got %q, want %q", told, test.says)
			}
			if fails := strings.Contains(strings.Join(told, ""), "FAIL"); fails != test.fails || fails != (got.code == 1) {
				t.Errorf("got code %d, %q", got.code, told)
			}
		})
	}
}

// A replica that is started beside other functions says so in its log, to
// whoever asks for the status, and on the page.
func TestDriftIsTold(t *testing.T) {
	work := jobs(soloist.Job{Name: "night"})
	root := deployed(t, work)
	for schedule, want := range map[string]bool{"30 2 * * *": false, "0 4 * * *": true} {
		environment(t, "SOLOIST_STORAGE=memory:", "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "FUNCTIONS_APP_ROOT_PATH="+root, "SOLOIST_JOB_NIGHT_SCHEDULE="+schedule)
		const text = "does not fire at the ticks of the job"
		s, log := logged(t, host.Program{Store: &local.Memory{}, Work: work})
		heard := map[string]string{
			"log":    log.String(),
			"JSON":   s.get("/api/v1/jobs").Body.String(),
			"status": run(t.Context(), host.Program{Work: work}, "status").out,
		}
		for where, got := range heard {
			wantEqual(t, schedule+": told in "+where, strings.Contains(got, text), want)
		}
		if want && (!strings.Contains(log.String(), `"level":"ERROR"`) || !strings.Contains(log.String(), "run demo functions DIR")) {
			t.Errorf("got the log %s", log.String())
		}
	}
}

// Doctor finds the app in the directory that it is called in too, if this
// command has written it.
func TestDriftInWorkingDirectory(t *testing.T) {
	work := jobs(soloist.Job{Name: "night"})
	root := deployed(t, work)
	environment(t, "SOLOIST_STORAGE=memory:", "SOLOIST_JOB_NIGHT_SCHEDULE=0 4 * * *")
	for dir, want := range map[string]int{root: 1, t.TempDir(): 0} {
		t.Chdir(dir)
		if got := run(t.Context(), host.Program{Work: work}, "doctor"); got.code != want || strings.Contains(got.out, "function night: ") != (want == 1) {
			t.Errorf("got %+v, want code %d", got, want)
		}
	}
	if !slices.Contains(names(tree(t, root)), "night/function.json") {
		t.Error("doctor has changed the app")
	}
}

// moduleDir returns a directory within a module.
func moduleDir(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/reports\n"), 0o644))
	return filepath.Join(root, "deploy")
}

func TestDeployFiles(t *testing.T) {
	environment(t)
	all := append(work(), jobs(soloist.Job{Name: "night", Timeout: time.Hour})...)
	for kind, want := range map[string]string{"functions": "infra/modules/functions.bicep", "containerapp": "infra/jobs.bicep", "containerapp-job": "infra/jobs.bicep"} {
		dir := moduleDir(t)
		deploy := func(more ...string) result {
			return run(t.Context(), host.Program{Work: all}, append([]string{"deploy-files", kind, dir, "--package", "./jobs"}, more...)...)
		}
		got := deploy()
		got.wants(t, kind, 0, want+"\n", "singleton leader does not run there", "demo: beat: ticks are nearer than 2m0s")
		warned := strings.Contains(got.err, "job night may take 1h0m0s: Flex Consumption takes")
		wantEqual(t, kind+": warned of a run that may be killed", warned, kind == "functions")
		if got := deploy(); got.code != 0 || !strings.HasPrefix(got.out, "all files are in "+dir) {
			t.Errorf("%s again: got %+v", kind, got)
		}
		must(t, os.WriteFile(filepath.Join(dir, "azure.yaml"), []byte("name: mine\n"), 0o644))
		deploy().wants(t, kind, 1, "azure.yaml in "+dir+" would be overwritten")
		deploy("--overwrite").wants(t, kind, 0, "1 file in ")
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
		got.wants(t, strings.Join(args, " "), test.code, test.want)
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
		run(t.Context(), host.Program{Work: work()}, "deploy-files", kind, dir, "--package", ".").wants(t, kind, 0)
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

// What is deployed is compared with what alarms need.
func TestDriftOfAlarms(t *testing.T) {
	night := jobs(soloist.Job{Name: "night"})
	for _, test := range []struct {
		name   string
		before []string // settings when the functions were written
		change change
		says   string
		fails  bool
	}{
		{"the same", []string{"SOLOIST_ALARM=queue"}, nothing, "", false},
		{"timers", nil, nothing, "function alarm: it is missing, so no alarm wakes the app up", true},
		{"another queue", []string{"SOLOIST_ALARM=queue"}, settings("SOLOIST_ALARM_QUEUE=wake-up"), `function alarm: its queue is "demo-alarm", and alarms are put into "wake-up" (SOLOIST_ALARM_QUEUE)`, true},
		{"switched off", []string{"SOLOIST_ALARM=queue"}, settings("AzureWebJobs_alarm_Disabled=1"), "function alarm: it is missing", true},
		{"a timer too many", []string{"SOLOIST_ALARM=queue"}, edited("night/function.json", timerFile("0 30 2 * * *")), `function night: its timer, "0 30 2 * * *", is not needed`, false},
		{"no net", []string{"SOLOIST_ALARM=queue"}, settings("AzureWebJobs_tick_Disabled=1"), "function tick: it has no timer", false},
	} {
		environment(t, test.before...)
		root := t.TempDir()
		write(t, night, stand(t), root).wants(t, "functions", 0)
		environment(t, append(test.change(t, root), "SOLOIST_ALARM=queue", "FUNCTIONS_APP_ROOT_PATH="+root)...)
		w := newWoken()
		w.Work = night
		run(t.Context(), w.Program, "tick")
		got := run(t.Context(), w.Program, "doctor")
		told := strings.Join(drift(got.out), "")
		if (test.says == "") != (told == "") || !strings.Contains(told, test.says) || strings.Contains(told, "FAIL") != test.fails {
			t.Errorf("%s: got %s\nof %s", test.name, told, got.out)
		}
	}
}

// drift is what doctor says of the functions that are deployed.
func drift(out string) (told []string) {
	for text := range strings.Lines(out) {
		if strings.Contains(text, "  functions  ") && !strings.HasPrefix(text, "ok") {
			told = append(told, text)
		}
	}
	return told
}
