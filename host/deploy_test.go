package host_test

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
)

// tree is a directory's files.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		name, _ := filepath.Rel(dir, p)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	must(t, err)
	return files
}

func names(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

// file writes a file, and makes its directory.
func file(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// stand is a small file in place of a program.
func stand(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	file(t, path, "a program")
	return path
}

// write calls the command functions, for a plan on which each job can have a timer.
func write(t *testing.T, work []soloist.Work, program, dir string, more ...string) result {
	t.Helper()
	if !slices.Contains(more, "--plan") {
		more = append(more, "--plan", "consumption")
	}
	return run(t.Context(), host.Program{Work: work}, append([]string{"functions", dir, "--binary", program}, more...)...)
}

func jobs(list ...soloist.Job) (all []soloist.Work) {
	for _, j := range list {
		if j.Do = do; j.Schedule == "" && len(j.After.Jobs) == 0 {
			j.Schedule = "30 2 * * *"
		}
		all = append(all, j)
	}
	return all
}

// Which functions there are by jobs, plan and settings, and what is said of jobs that do not fit. On Flex Consumption, the
// default, each timer has an instance of its own, so one looks after all jobs; an invocation may take half an hour, and no run
// more than 55 minutes. With alarms the queue calls one function, and a timer comes once a day; the storage of the functions may
// be none of this machine.
func TestWriteFunctions(t *testing.T) {
	program := stand(t)
	night, two := soloist.Job{Name: "night"}, jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b", Timeout: 20 * time.Minute})
	const lasts = `"functionTimeout": "`
	for _, test := range []struct {
		name  string
		env   []string
		work  []soloist.Work
		args  []string
		files []string // the functions
		has   []string // in the files
		err   string   // is said
	}{
		{name: "by its own timer", work: jobs(soloist.Job{Name: "night"}), files: []string{"night"}},
		{name: "in another zone", work: jobs(soloist.Job{Name: "night", TimeZone: "Europe/Berlin"}), files: []string{"tick"}},
		{name: "rerun", work: jobs(soloist.Job{Name: "night", Interrupted: soloist.Rerun}), files: []string{"night", "tick"}},
		{name: "a tick that waits", work: jobs(soloist.Job{Name: "night", Overlap: soloist.QueueOne}), files: []string{"night", "tick"}},
		{name: "all missed", work: jobs(soloist.Job{Name: "night", Late: soloist.Late{Missed: soloist.RunAll}}), files: []string{"night", "tick"}},
		{name: "some of each", work: jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b", Schedule: "@every 7m"}), files: []string{"a", "tick"}},
		{name: "a follower", work: jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b", After: soloist.After{Jobs: []string{"a"}}}), files: []string{"a"}},
		{name: "a follower that is run again", work: jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b", After: soloist.After{Jobs: []string{"a"}}, Interrupted: soloist.Rerun}), files: []string{"a", "tick"}},
		{name: "a follower of a job of tick", work: jobs(soloist.Job{Name: "a", Schedule: "@every 7m"}, soloist.Job{Name: "b", After: soloist.After{Jobs: []string{"a"}}}), files: []string{"tick"}},
		{name: "warmup", work: jobs(soloist.Job{Name: "night"}), args: []string{"--warmup"}, files: []string{"night", "warmup"}},
		{name: "a singleton", work: append(jobs(soloist.Job{Name: "night"}), soloist.Singleton{Name: "leader", Do: do}), files: []string{"night"},
			err: "singleton leader does not run in Functions"},
		{name: "everywhere", work: jobs(soloist.Job{Name: "night", EveryReplica: true}), files: []string{"night"}, err: "here it is the one instance"},
		{name: "long", work: jobs(soloist.Job{Name: "night", Timeout: time.Hour}), files: []string{"night"}, err: "job night may take 1h0m0s, which needs a functionTimeout of 01:02:00: an app on the Consumption plan, whose most is 00:10:00, would not start. Deploy to another plan, or give the job a Timeout of at most 8m35s"},
		{name: "one timer", work: jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b", Schedule: "@every 10s", Late: soloist.Late{Missed: soloist.RunAll}}), args: []string{"--tick"}, files: []string{"tick"}, err: "!more often"},
		{name: "one timer for each second", work: jobs(soloist.Job{Name: "a", Schedule: "@every 10s"}), args: []string{"--tick"}, files: []string{"tick"}, err: "job a has ticks more often than the function tick comes"},
		{name: "more than one a minute, by its own timer", work: jobs(soloist.Job{Name: "a", Schedule: "@every 10s"}), files: []string{"a"}, err: "!more often"},
		{name: "flex", work: two, args: flex, files: []string{"tick"}, has: []string{lasts + "00:30:00", noSampling}, err: "!Flex Consumption"},
		{name: "consumption", work: jobs(night), files: []string{"night"}, has: []string{lasts + "00:10:00", noSampling}},
		{name: "other", work: two, args: []string{"--plan", "other"}, files: []string{"a", "b"}, has: []string{lasts + "00:30:00"}},
		{name: "a long run on Flex", work: jobs(long(56)), args: flex, files: []string{"tick"}, has: []string{lasts + "00:58:00"}, err: "job night may take 56m0s: Flex Consumption takes"},
		// A timer that fires seldom has its calls made again after a failure, which a near one would only wait for.
		{name: "retries", work: jobs(soloist.Job{Name: "ten", Schedule: "*/10 * * * *"}), files: []string{"ten"},
			has: []string{`"strategy": "fixedDelay"`, `"maxRetryCount": 5`, `"delayInterval": "00:01:00"`}},
		{name: "no retries", work: jobs(soloist.Job{Name: "nine", Schedule: "*/9 * * * *", Late: soloist.Late{Missed: soloist.RunAll}}), files: []string{"nine", "tick"}, has: []string{`!"strategy"`}},
		{name: "alarm", env: alarms, work: jobs(soloist.Job{Name: "night", TimeZone: "Europe/Berlin"}), files: withAlarm,
			has: []string{`"queueName": "demo-alarm"`, `"connection": "AzureWebJobsStorage"`, `"type": "queueTrigger"`, `"0 17 3 * * *"`, `"Microsoft.Azure.Functions.ExtensionBundle"`}},
		{name: "alarm in another queue", env: append(alarms, "SOLOIST_ALARM_QUEUE=wake-up", "SOLOIST_STORAGE=UseDevelopmentStorage=true"), work: jobs(night), files: withAlarm,
			has: []string{`"queueName": "wake-up"`, `"connection": "SOLOIST_STORAGE"`}},
		{name: "alarm by a URL", env: append(alarms, "SOLOIST_STORAGE=https://a.blob.core.windows.net"), work: jobs(night), files: withAlarm, err: "SOLOIST_STORAGE is a URL, which a trigger cannot use"},
		{name: "alarm too often", env: alarms, work: jobs(soloist.Job{Name: "beat", Schedule: "@every 1m"}), files: withAlarm, err: "job beat has ticks more often than every 2m0s, the stay"},
		{name: "alarm on each replica", env: alarms, work: jobs(soloist.Job{Name: "beat", EveryReplica: true}), files: withAlarm, err: "no alarm wakes one up for it"},
		{name: "alarm, long", env: alarms, work: jobs(long(8)), files: withAlarm, err: "needs a functionTimeout of 00:12:00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t, test.env...)
			dir := filepath.Join(t.TempDir(), "deep", "app")
			got := write(t, test.work, program, dir, test.args...)
			got.wants(t, "functions", 0, test.err, "it is no Go program")
			files, all := tree(t, dir), ""
			want := []string{".funcignore", ".soloist-functions.json", "demo", "host.json", "local.settings.json"}
			for _, function := range test.files {
				want = append(want, function+"/function.json")
				wantText(t, "the list", got.out, "\n"+function+" ")
			}
			slices.Sort(want)
			wantEqual(t, "files", names(files), want)
			if info, err := os.Stat(filepath.Join(dir, "demo")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
				t.Errorf("the program: %v, %v", info.Mode(), err)
			}
			n, _, _ := strings.Cut(got.out, " function")
			wantEqual(t, "functions", n, strconv.Itoa(len(test.files)))
			for name, text := range files {
				if all += text; strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
					t.Errorf("%s: %s", name, text)
				}
			}
			wantText(t, "the files", all, test.has...)
		})
	}
	byDefault, onFlex := t.TempDir(), t.TempDir()
	run(t.Context(), host.Program{Work: two}, "functions", byDefault, "--binary", program).wants(t, "functions", 0)
	write(t, two, program, onFlex, flex...)
	wantEqual(t, "files by default", tree(t, byDefault), tree(t, onFlex))
}

var flex, withAlarm = []string{"--plan", "flex"}, []string{"alarm", "tick"}

const noSampling = `"samplingSettings": {
        "isEnabled": false`

func long(minutes time.Duration) soloist.Job {
	return soloist.Job{Name: "night", Timeout: minutes * time.Minute}
}

// A second call replaces what the first has written, and nothing else.
func TestWriteFunctionsAgain(t *testing.T) {
	environment(t)
	program, dir := stand(t), t.TempDir()
	both := jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b"}, soloist.Job{Name: "c"})
	write(t, both, program, dir).wants(t, "functions", 0)
	first := tree(t, dir)
	write(t, both, program, dir).wants(t, "functions", 0)
	wantEqual(t, "a second call", tree(t, dir), first)
	for _, name := range []string{"README", "b/sample.dat", "c/function.json", "host.json", "local.settings.json"} {
		file(t, filepath.Join(dir, name), "mine")
	}
	file(t, program, "a newer program")
	write(t, jobs(soloist.Job{Name: "a", Schedule: "@hourly"}), program, dir).wants(t, "functions", 0, "removed b/function.json",
		"host.json was edited", "c/function.json is not wanted any more", "!local.settings.json")
	files := tree(t, dir)
	for name, want := range map[string]string{"README": "mine", "b/sample.dat": "mine", "c/function.json": "mine", "host.json": "mine",
		"local.settings.json": "mine", "demo": "a newer program", "b/function.json": ""} {
		wantEqual(t, name, files[name], want)
	}
	wantText(t, "the timer", files["a/function.json"], `"0 0 * * * *"`)
	file(t, filepath.Join(dir, "d/function.json"), "mine")
	before := tree(t, dir)
	write(t, jobs(soloist.Job{Name: "d"}), program, dir).wants(t, "over a file of somebody else", 1, "d/function.json")
	wantEqual(t, "files", tree(t, dir), before)
}

func TestWriteFunctionsRefuses(t *testing.T) {
	environment(t)
	program := stand(t)
	work := jobs(soloist.Job{Name: "night"})
	has := func(name string) (dir string) {
		dir = t.TempDir()
		file(t, filepath.Join(dir, name), "mine")
		return dir
	}
	// The last two only begin like the file of a killed call.
	foreign := []string{"thesis.txt", "host.json", ".soloist-functions.json.mine.new", "host.json.ABCDEFGH.new"}
	full, damaged, none := has(foreign[0]), has(".soloist-functions.json"), filepath.Join(t.TempDir(), "x")
	for _, test := range []struct {
		work []soloist.Work
		args []string
		code int
		want string
	}{
		{work, nil, 2, "functions: into which directory?"},
		{work, []string{"a", "b"}, 2, `unexpected argument "b"`},
		{work, []string{damaged}, 1, "is damaged"},
		{work, []string{program}, 1, program},
		{work, []string{none, "--binary", filepath.Join(full, "none")}, 1, "the program: "},
		{[]soloist.Work{soloist.Singleton{Name: "leader", Do: do}}, []string{none}, 1, "there is no job"},
		{jobs(soloist.Job{Name: "Tick"}), []string{none}, 2, `job "Tick"`},
	} {
		args := append([]string{"functions"}, test.args...)
		if !slices.Contains(args, "--binary") {
			args = append(args, "--binary", program)
		}
		run(t.Context(), host.Program{Work: test.work}, args...).wants(t, strings.Join(args, " "), test.code, test.want)
	}
	for _, name := range foreign {
		dir := has(name)
		write(t, work, program, dir).wants(t, name, 1, "was not written by this command, and has "+name+" in it")
		wantEqual(t, "files", names(tree(t, dir)), []string{name})
	}
	wantEqual(t, "files", append(names(tree(t, full)), names(tree(t, damaged))...), []string{"thesis.txt", ".soloist-functions.json"})
}

// A program for another system is warned of, and one whose name a folder has
// gets another.
func TestWriteFunctionsChecksProgram(t *testing.T) {
	nightly.Only(t, "builds programs")
	environment(t)
	src := t.TempDir()
	file(t, filepath.Join(src, "main.go"), "package main\n\nfunc main() {}\n")
	file(t, filepath.Join(src, "go.mod"), "module example.org/x\n")
	cmd := exec.Command("go", "build", "-o", "built", ".")
	cmd.Dir, cmd.Env = src, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	built := tree(t, src)["built"]
	const settings = "GOARCH=amd64\nbuild\tGOOS=linux\nbuild\tGOAMD64=v1\n" // what the program tells of its build
	wantText(t, "the program", built, settings)
	for _, test := range []struct{ settings, file, warning string }{
		{settings, "demo.program", "!the program"},
		{"GOARCH=amd64\nbuild\tGOOS=windows\nbuild\tGOAMD64=\n", "demo.program.exe", "the program is for windows/amd64"},
		{"GOARCH=arm64\nbuild\tGOOS=linux\nbuild\tGOARM64=v8\n", "demo.program", "the program is for linux/arm64"},
	} {
		binary, dir := filepath.Join(t.TempDir(), "built"), t.TempDir()
		// Written into the program, of the same length: a build for another system would compile the standard library again.
		wantEqual(t, "the length of the settings", len(test.settings), len(settings))
		file(t, binary, strings.ReplaceAll(built, settings, test.settings))
		got := write(t, jobs(soloist.Job{Name: "demo"}), binary, dir).wants(t, test.file, 0)
		wantText(t, "standard error", got.err, test.warning)
		files := tree(t, dir)
		wantEqual(t, "the program is there as it was", files[test.file] == tree(t, filepath.Dir(binary))["built"], true)
		wantText(t, "host.json", files["host.json"], `"`+test.file+`"`)
	}
}

// A call that is killed leaves the file that it was writing. The next one finishes its work and leaves nothing of that, nor of a
// job that went; a file that only has such an end stays.
func TestWriteFunctionsAfterKilledCall(t *testing.T) {
	environment(t)
	program, work := stand(t), jobs(soloist.Job{Name: "night"})
	for _, before := range [][]soloist.Work{nil, append(jobs(soloist.Job{Name: "gone"}), work...)} {
		dir := t.TempDir()
		left := []string{".soloist-functions.json.ABCDEFGH.new"}
		want := []string{".funcignore", ".soloist-functions.json", "demo", "host.json", "local.settings.json", "night/function.json"}
		if before != nil {
			write(t, before, program, dir)
			left = append(left, "demo.ABCDEFG2.new", "night/function.json.ABCDEFGH.new", "gone/function.json.ABCDEFGH.new", "notes.new")
			want = append(want, "notes.new")
		}
		for _, p := range left {
			file(t, filepath.Join(dir, filepath.FromSlash(p)), "{")
		}
		write(t, work, program, dir).wants(t, "functions", 0)
		wantEqual(t, "files", names(tree(t, dir)), want)
		if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
			t.Error("the directory of a job that went is left")
		}
	}
}

// deployed is what the command functions writes for these jobs, with these flags and settings.
func deployed(t *testing.T, work []soloist.Work, args ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	var flags []string
	if len(args) > 0 && strings.HasPrefix(args[0], "--") {
		flags, args = args, nil
	}
	environment(t, args...)
	write(t, work, stand(t), root, flags...).wants(t, "functions", 0)
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
		{"a follower", jobs(night, soloist.Job{Name: "next", After: soloist.After{Jobs: []string{"night"}}}), nil, nil, nothing, "", false},
		{"a job that follows now", jobs(night, other), nil, jobs(night, soloist.Job{Name: "other", After: soloist.After{Jobs: []string{"night"}}}), nothing,
			`function other: its timer, "0 30 2 * * *", is not needed: the job follows night, whose timers run it`, true},
		{"a follower that is run again now", jobs(night, soloist.Job{Name: "next", After: soloist.After{Jobs: []string{"night"}}}), nil, jobs(night, soloist.Job{Name: "next", After: soloist.After{Jobs: []string{"night"}}, Interrupted: soloist.Rerun}), nothing,
			"function next: the job needs the function tick (rerun)", true},
		{"a job that is gone", jobs(night, other), nil, jobs(night), nothing, "function other: no job has this name, so its calls are refused", false},
		{"a job that is run again now", jobs(night), nil, jobs(soloist.Job{Name: "night", Interrupted: soloist.Rerun}), nothing, "function night: the job needs the function tick too (rerun)", true},
		{"an HTTP trigger", jobs(night), nil, nil, edited("night/function.json", `{"bindings":[{"type":"httpTrigger","direction":"in","name":"req"},{"type":"http","direction":"out","name":"res"}]}`),
			"the job has no timer", true},
		{"a function that is disabled", jobs(night), nil, nil, edited("night/function.json", strings.Replace(timerFile("0 30 2 * * *"), "{", `{"disabled":true,`, 1)), "the job has no timer", true},
		{"a function that a setting disables on Linux", jobs(night), nil, nil, settings("AzureWebJobs_night_Disabled=true"), "the job has no timer", true},
		{"a setting that is no schedule", jobs(night), nil, nil, func(t *testing.T, root string) []string {
			return append(edited("night/function.json", timerFile("%SECRET%"))(t, root), "SECRET=topsecret")
		}, `its timer, "%SECRET%", does not fire`, true},
		{"a function that is damaged", jobs(night, rerun), nil, nil, edited("night/function.json", "{"), "function night: its function.json cannot be read", true},
		{"a tick that is rare", jobs(night, rerun), nil, nil, edited("tick/function.json", timerFile("0 0 * * * *")), `function tick: its timer, "0 0 * * * *", is not that of each minute`, true},
		{"a time zone of the app", jobs(night), nil, nil, settings("WEBSITE_TIME_ZONE=W. Europe Standard Time"), `WEBSITE_TIME_ZONE is "W. Europe Standard Time", by which timers count, and they are written for UTC: remove that setting`, true},
		{"a time-out that is short", jobs(soloist.Job{Name: "night", Timeout: 9 * 60e9}), nil, nil, edited("host.json", `{"version":"2.0","functionTimeout":"00:05:00"}`),
			"job night is never started: it may take 9m0s, and of an invocation runs have 4m5s", true},
		{"a time-out of the host that is shorter", jobs(night), nil, nil, settings("SOLOIST_FUNCTION_TIMEOUT=2h"),
			"SOLOIST_FUNCTION_TIMEOUT is 2h0m0s, and the host kills the program when an invocation has lasted 10m0s: lower or remove that setting, or raise functionTimeout in host.json", true},
		{"a time-out of the host that a variable makes shorter", jobs(night), nil, nil, settings("SOLOIST_FUNCTION_TIMEOUT=8m", "AzureFunctionsJobHost__functionTimeout=00:05:00"),
			"an invocation has lasted 5m0s", true},
		{"a run that is too long for Flex Consumption", jobs(soloist.Job{Name: "night", Timeout: 56 * 60e9}), nil, nil, settings("WEBSITE_SKU=FlexConsumption"),
			"job night may take 56m0s: Flex Consumption takes an instance away while a run goes on", false},
		{"alarms", jobs(night), alarms, nil, settings(alarms...), "", false},
		{"timers in place of alarms", jobs(night), nil, nil, settings(alarms...), "function alarm: it is missing, so no alarm wakes the app up", true},
		{"alarms in another queue", jobs(night), alarms, nil, settings(append(alarms, "SOLOIST_ALARM_QUEUE=wake-up")...), `function alarm: its queue is "demo-alarm", and alarms are put into "wake-up" (SOLOIST_ALARM_QUEUE)`, true},
		{"a timer too many beside alarms", jobs(night), alarms, nil, func(t *testing.T, root string) []string {
			return append(edited("night/function.json", timerFile("0 30 2 * * *"))(t, root), alarms...)
		}, `function night: its timer, "0 30 2 * * *", is not needed`, false},
		{"no net under alarms", jobs(night), alarms, nil, settings(append(alarms, "AzureWebJobs_tick_Disabled=1")...), "function tick: it has no timer", false},
		{"no app", jobs(night), nil, jobs(other), func(t *testing.T, root string) []string { os.Remove(filepath.Join(root, "host.json")); return nil }, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := deployed(t, test.written, test.args...)
			env := test.change(t, root)
			environment(t, append(env, "FUNCTIONS_APP_ROOT_PATH="+root)...)
			if test.now == nil {
				test.now = test.written
			}
			w := newWoken()
			w.Work = test.now
			if slices.Contains(env, alarms[0]) {
				call(t, w.Program, "tick") // which sets the alarm
			}
			got := call(t, w.Program, "doctor")
			told := regexp.MustCompile(`(?m)^(warn|FAIL)  functions  .*$`).FindAllString(got.out, -1)
			several := []string{"a tick that is rare", "a function that is damaged", "timers in place of alarms"}
			if len(told) > 1 && !slices.Contains(several, test.name) || (test.says == "") != (told == nil) {
				t.Errorf("got %q, want %q", told, test.says)
			}
			all := strings.Join(told, "")
			wantText(t, "doctor", all, test.says)
			wantEqual(t, "it fails, and so does the command", []bool{strings.Contains(all, "FAIL"), got.code == 1}, []bool{test.fails, test.fails})
		})
	}
}

var alarms = []string{"SOLOIST_ALARM=queue"}

// A replica that is started beside other functions says so in its log, to
// whoever asks for the status, and on the page.
func TestDriftIsTold(t *testing.T) {
	const text = "does not fire at the ticks of the job"
	p := host.Program{Store: &local.Memory{}, Work: jobs(soloist.Job{Name: "night"})}
	root := deployed(t, p.Work)
	for schedule, tells := range map[string][]string{"30 2 * * *": {"!" + text}, "0 4 * * *": {text}} {
		environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "FUNCTIONS_APP_ROOT_PATH="+root, "SOLOIST_JOB_NIGHT_SCHEDULE="+schedule, "COLUMNS=200")
		s, log := logged(t, p)
		s.tick()
		wantAnswer(t, "JSON", s.get("/api/v1/jobs"), 200, tells...)
		wantLines(t, p, "status", 0, tells...)
		if tells[0] == text {
			tells = append(tells, `"level":"ERROR"`, "run demo functions DIR")
		}
		wantText(t, "log", log.String(), tells...)
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
		p, dir := host.Program{Work: all}, moduleDir(t)
		deploy := "deploy-files " + kind + " " + dir + " --package ./jobs"
		wantLines(t, p, deploy, 0, want+"\n", "singleton leader does not run there", "demo: beat: ticks are nearer than 2m0s")
		got := run(t.Context(), p, strings.Fields(deploy)...)
		got.wants(t, deploy, 0, "all files are in "+dir)
		warned := strings.Contains(got.err, "job night may take 1h0m0s: Flex Consumption takes")
		wantEqual(t, kind+": warned of a run that may be killed", warned, kind == "functions")
		file(t, filepath.Join(dir, "azure.yaml"), "name: mine\n")
		must(t, os.Remove(filepath.Join(dir, "README.md")))
		before := tree(t, dir)
		wantLines(t, p, deploy, 1, "azure.yaml in "+dir+" would be overwritten")
		wantEqual(t, "files, of which one would be overwritten", tree(t, dir), before)
		wantLines(t, p, deploy+" --overwrite", 0, "2 files in ")
	}
}

func TestDeployFilesRefuses(t *testing.T) {
	environment(t)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "for what (functions, containerapp, containerapp-job, containerapp-always-on or kubernetes), and into which directory?"},
		{"kubernetes " + moduleDir(t) + " --package .", 1, `the image is "": name it with --image`},
		{"containerapp " + moduleDir(t) + " --package . --image jobs:1", 1, "containerapp has no --image"},
		{"functions", 2, "for what"},
		{"vm " + moduleDir(t), 2, `KIND must be one of "functions"`},
		{"functions " + moduleDir(t), 1, "name it with --package"},
		{"functions " + moduleDir(t) + " --package jobs", 1, `the main package is "jobs"`},
		{"functions " + t.TempDir() + " --package .", 1, "not within a Go module"},
	} {
		wantLines(t, host.Program{Work: work()}, "deploy-files "+test.args, test.code, test.want)
	}
}

// Where replicas stay up, nothing is wrong with singletons, with jobs of each replica, or with ticks that are near.
func TestDeployFilesThatKeepReplicasUp(t *testing.T) {
	environment(t)
	all := append(work(), jobs(soloist.Job{Name: "each", EveryReplica: true})...)
	for kind, want := range map[string]string{"containerapp-always-on": "infra/jobs.bicep", "kubernetes --image jobs:1": "chart/values.yaml"} {
		p, dir := host.Program{Work: all}, moduleDir(t)
		deploy := "deploy-files " + kind + " " + dir + " --package ./jobs"
		wantLines(t, p, deploy+" --json", 0, `"queue": ""`, `"warnings": []`)
		must(t, os.Remove(filepath.Join(dir, filepath.FromSlash(want))))
		wantLines(t, p, deploy, 0, want+"\n", "1 file in ", "!singleton")
	}
}

// The program takes each setting that the files name, with the value that they
// give it.
func TestDeployFilesFitSettings(t *testing.T) {
	values := map[string]string{"app": "demo", "queueName": "demo-alarm", "storageUrl": "https://example.blob.core.windows.net/"}
	setting := regexp.MustCompile(`name: '?(SOLOIST_\w+)'?\s+value: ('[^']*'|"[^"]*"|\w+)`)
	for _, kind := range []string{"functions", "containerapp", "containerapp-job", "containerapp-always-on", "kubernetes --image jobs:1"} {
		dir := moduleDir(t)
		environment(t)
		wantLines(t, host.Program{Work: work()}, "deploy-files "+kind+" "+dir+" --package .", 0)
		env := []string{"SOLOIST_STORAGE=https://example.blob.core.windows.net"}
		files := tree(t, dir)
		for _, m := range setting.FindAllStringSubmatch(files["infra/jobs.bicep"]+files["infra/modules/functions.bicep"]+files["kubernetes.yaml"], -1) {
			value := cmp.Or(values[m[2]], strings.Trim(m[2], `'"`))
			env = append(env, m[1]+"="+strings.ReplaceAll(value, "${tickTimeout}", "1800"))
		}
		environment(t, env...)
		wantLines(t, host.Program{Work: work()}, "validate --json", 0, "!SOLOIST_")
		wantWithin(t, kind+": settings", len(env), 4, 100)
	}
}
