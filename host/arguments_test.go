package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/internal/record"
)

// What may follow, by the words before: the last is empty where a blank is last.
var completions = map[string][]string{
	"":                         {"serve", "tick", "status", "history", "why", "next", "pause", "resume", "run", "cancel", "backfill", "step-down", "audit", "unlock", "wake", "sweep", "functions", "deploy-files", "validate", "doctor", "completion", "help"},
	"st":                       {"status", "step-down"},
	"run ":                     {"beat", "night-report"}, // a singleton runs all the time
	"cancel le":                {"leader"},
	"bogus ":                   nil,
	"unlock ":                  {"beat", "night-report", "leader"},
	"unlock --now le":          {"leader"},
	"unlock beat --":           {"--now", "--yes", "--json", "--help"},
	"next ":                    {"beat", "night-report"}, // a singleton has no ticks
	"next -n ":                 nil,
	"history --job=be":         {"--job=beat"},
	"history --job=beat --out": {"--outcome"},
	"history --job be":         {"beat"},
	"history --since 1h ni":    {"night-report"},
	"history --outcome s":      {"succeeded", "stalled", "skipped"},
	"history --since=":         nil,
	"completion ":              {"bash", "zsh", "fish"},
	"help dr":                  nil,
	"help d":                   {"deploy-files", "doctor"},
	"tick ":                    {"--json", "--help"},
	"functions --binary ":      nil, // files
	"deploy-files f":           {"functions"},
	"deploy-files k":           {"kubernetes"},
	"deploy-files c":           {"containerapp", "containerapp-job", "containerapp-always-on"},
	"deploy-files functions ":  nil, // files
}

// Settings that are wrong do not matter, nor does a storage out of reach.
func TestCompletions(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong")
	p := host.Program{Work: work(), Store: down()}
	for line, want := range completions {
		got := run(t.Context(), p, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		wantEqual(t, line, append(strings.Fields(got.out), got.err), append(want, ""))
		wantCode(t, got.code, 0)
	}
	wantLines(t, p, "__complete", 0, "serve\n")
}

// In each shell the script asks the program. A test of zsh stands in for its
// editor: it sets what the editor sets, and takes what it is given.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	nightly.Only(t, "starts shells")
	dir := t.TempDir()
	if err := os.Symlink(proctest.Self(), filepath.Join(dir, "demo.v2")); err != nil {
		t.Skip(err) // as on Windows
	}
	for shell, ask := range map[string]string{
		"bash": `source <(demo.v2 completion bash); COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); ` +
			`_demo_v2_complete && [ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh":  `source <(demo.v2 completion zsh); shift; words=("$@") CURRENT=$#; compadd() { shift; print -l -- "$@" }; _files() {}; _demo_v2_complete`,
		"fish": `demo.v2 completion fish | source; complete -C $argv[1]`,
	} {
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		for line, want := range map[string][]string{
			"demo.v2 unl":                          {"unlock"},
			"demo.v2 unlock ":                      {"beat", "leader"},
			"demo.v2 unlock le":                    {"leader"},
			"demo.v2 history --outcome=stal":       {"--outcome=stalled"},
			"demo.v2 history --job=beat --outcome": {"--outcome"},
		} {
			words := strings.Split(line, " ")
			if shell == "bash" { // which takes = for a word of its own, and replaces the last one
				if name, value, ok := strings.Cut(words[len(words)-1], "="); ok {
					words = append(words[:len(words)-1], name, "=", value)
					want = []string{strings.TrimPrefix(want[0], name+"=")}
				}
			}
			args := append([]string{"-c", ask, "test", line}, words...)
			if shell == "fish" {
				args = []string{"--no-config", "-c", ask, line}
			} else if shell == "zsh" {
				args = append([]string{"-f"}, args...)
			}
			cmd := exec.Command(program, args...)
			cmd.Env = append(proctest.Environ(), "TEST_PROGRAM=beat", "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir)
			out, err := cmd.Output()
			if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q: got %q, %v, want %q", shell, line, got, err, want)
			}
		}
	}
}

func TestCompletionOfOddNames(t *testing.T) {
	environment(t)
	for name, code := range map[string]int{"demo": 0, "my-jobs.v2": 0, "a b": 2, "$(id)": 2, "a;b": 2, "-x": 2} {
		var out, errs strings.Builder
		p := host.Program{Name: name, Args: []string{"completion", "bash"}, Stdout: &out, Stderr: &errs}
		if got := p.Run(t.Context()); got != code || (out.Len() == 0) != (code != 0) {
			t.Errorf("%q: got %d, %q, %q", name, got, out.String(), errs.String())
		}
	}
	wantLines(t, host.Program{}, "completion tcsh", 2, `demo: completion: SHELL must be one of "bash","zsh","fish" but got "tcsh"`)
}

// An error about one name of many lists a few of them, and what may be meant.
func TestAWrongNameOfMany(t *testing.T) {
	environment(t)
	p := host.Program{Store: down()}
	for i := range 2000 {
		p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "@hourly", Do: do})
	}
	for _, command := range []string{"status", "why", "pause"} {
		wantLines(t, p, command+" jbo-1500", 2, "want one of job-0000, job-0001, job-0002, job-0003, job-0004, 1995 others; did you mean job-1500?\n")
	}
}

func TestWrongArguments(t *testing.T) {
	environment(t)
	p := host.Program{Work: work(), Store: down(), Now: spring}
	const help = "\ndemo help lists the commands\n"
	for args, want := range map[string]string{
		"bogus":                               "unknown command \"bogus\": demo help lists the commands\n",
		"stauts":                              "unknown command \"stauts\": did you mean status?\n",
		"serve now":                           `serve: unexpected argument "now"` + help,
		"status --jsno":                       "status: unknown flag --jsno: did you mean --json?" + help,
		"serve --json":                        "serve: unknown flag --json: it takes none" + help,
		"tick beat":                           `tick: unexpected argument "beat"` + help,
		"pause":                               "pause: which job?" + help,
		"unlock":                              "unlock: of which job?" + help,
		"unlock --now":                        "unlock: of which job?" + help,
		"unlock beat leader":                  `unlock: unexpected argument "leader"` + help,
		"status --now":                        "status: unknown flag --now: want --failing, --exit-code, --watch, --locks, --tz, --json" + help,
		"history --at 2026-03-29":             "history: unknown flag --at: want --job, --since, --outcome, -n, --why, --tz, --json" + help,
		"validate -n 3":                       "validate: unknown flag -n: want --json" + help,
		"next -n x":                           `next: --limit: "x" is no number from 1 to 1000` + help,
		"next -n 0":                           `next: --limit: "0" is no number from 1 to 1000` + help,
		"history -n 1001":                     `history: --limit: "1001" is no number from 1 to 1000` + help,
		"next --at":                           "next: --at needs a value" + help,
		"next -é":                             "next: unknown flag -é: want -n, --at, --schedule, --tz, --json" + help,
		"status --json=perhaps":               `status: --json: bool value must be true, 1, yes, false, 0 or no but got "perhaps"` + help,
		"--json":                              "unknown flag --json: flags follow the command" + help,
		"-":                                   "unknown command \"-\": demo help lists the commands\n",
		"next beat leader":                    `next: unexpected argument "leader"` + help,
		"next leader":                         "there is no job \"leader\": want one of beat, night-report\n",
		"history nobody":                      "there is no job \"nobody\": want one of beat, night-report, leader\n",
		"history --since tomorrow":            `history: --since is "tomorrow": want a span such as 90m, 24h or 7d, a date such as 2026-03-29, today, yesterday, or an instant such as 2026-03-29T01:00:00Z`,
		"history --since=-5m":                 `history: --since is "-5m": want a span`,
		"history --since 99999d":              `history: --since is "99999d": want a span`,
		"history --since 0s":                  `history: --since is "0s": want a span`,
		"history --since 2026-03-29":          `history: --since is "2026-03-29": want a time that has passed`,
		"history --outcome succeed":           `history: --outcome is "succeed": want one of `,
		"history --outcome x":                 `history: --outcome is "x": want one of `,
		"history beat --job leader":           "history: JOB and --job name two jobs: want one",
		"history --job betta":                 `there is no job "betta"`,
		"history @2026-03-28T01:00:00Z":       `there is no job ""`,
		"history nobody@2026-03-28T01:00:00Z": `there is no job "nobody"`,
		"pause nobody":                        `there is no job "nobody": want one of beat, night-report, leader`,
		"pause beat --until yesterday":        `pause: --until is "yesterday": want a time to come`,
		"pause beat --until 2020-01-01":       `pause: --until is "2020-01-01": want a time to come`,
		"run beat --until 0s":                 `run: --until is "0s": want a span`,
		"audit nobody":                        `there is no job "nobody"`,
		"audit --since x":                     `audit: --since is "x": want a span`,
		"next --at tomorrow":                  `next: --at is "tomorrow": want a date such as 2026-03-29, or an instant such as 2026-03-29T01:00:00Z`,
		"next --at=":                          `next: --at is "": want a date`,
		"next --at 2026-02-30":                `next: --at is "2026-02-30": want a date`,
		"next --tz Mars/Olympus":              `next: --tz "Mars/Olympus" is unknown; want an IANA name such as Europe/Berlin, or UTC`,
		"next --tz=":                          `next: --tz "" is empty; want an IANA name`,
		"history --tz jobs":                   `history: --tz "jobs" is unknown; want an IANA name such as Europe/Berlin, or UTC; did you mean job?`,
		"status --tz Ago":                     `status: --tz "Ago" is unknown; want an IANA name such as Europe/Berlin, or UTC; did you mean ago?`,
		"status nobody":                       "there is no job \"nobody\": want one of beat, night-report, leader\n",
		"audit --tz CET --since 2026-03-29":   `audit: --since is "2026-03-29": want a time that has passed`,
		"audit --tz Local":                    `audit: --tz "Local" differs between machines`,
		"backfill beat --from tomorrow":       `backfill: --from is "tomorrow": want a span such as 90m`,
		"backfill beat --from 2026-02-30":     `backfill: --from is "2026-02-30": want a span such as 90m`,
		"next --schedule TZ=UTC":              `next: --schedule "TZ=UTC": byte 6: nothing after the prefix`,
	} {
		got := call(t, p, args)
		lines := max(1, strings.Count(want, "\n"))
		if got.code != 2 || got.out != "" || !strings.HasPrefix(got.err, "demo: "+want) || strings.Count(got.err, "\n") != lines {
			t.Errorf("%s: got %+v, want code 2 and %q", args, got, want)
		}
	}
	got := call(t, p, "history x --since y --outcome z")
	wantEqual(t, "all at once: lines", strings.Count(got.err, "\n"), 3)
}

func TestHelp(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong") // who asks for help may have it wrong
	for _, args := range []string{"help", "--help", "-h", "-help"} {
		got := wantLines(t, host.Program{}, args, 0, "\n3, in Functions 200: ", `"overrun"`)
		wantEqual(t, args+": standard error", got.err, "")
		for want := range strings.FieldsSeq(`serve tick status history next unlock validate help SOLOIST_APP SOLOIST_STORAGE SOLOIST_CONTAINER
			SOLOIST_LEASE SOLOIST_ADDR SOLOIST_GRACE SOLOIST_HISTORY SOLOIST_READ_TOKEN SOLOIST_ADMIN_TOKEN SOLOIST_LOG_FORMAT SOLOIST_LOG_LEVEL
			SOLOIST_JOB_<NAME>_SCHEDULE SOLOIST_JOB_<NAME>_TIMEZONE SOLOIST_JOB_<NAME>_PAUSED SOLOIST_JOB_<NAME>_PING
			SOLOIST_ALERT_WEBHOOK SOLOIST_ALERT_SECRET SOLOIST_ALERT_FAILURES`) {
			wantText(t, args, got.out, "\n  "+want+" ")
		}
	}
}

// A command's own help has its arguments and flags. It comes whatever else is
// wrong with the arguments.
func TestHelpOfOneCommand(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong")
	for _, args := range []string{"help unlock", "unlock --help", "unlock -h", "unlock beat --now -h leader"} {
		wantRun(t, host.Program{}, args, 0, `
			usage: demo unlock JOB [--now] [--yes] [--json]

			free a hung job: when its lease expires, or --now, while its holder may still work. It tells first who has the lease, and wants --yes; 0: done, or no replica has the lease

			  JOB     the job or singleton
			  --now   end the lease at once, while its holder may still work
			  --yes   do it, though a replica has the lease: its run loses it
			  --json  answer with one JSON value
		`)
	}
	got := run(t.Context(), host.Program{}, "help", "nxt")
	wantEqual(t, "help", got, result{2, "", "demo: help: unknown command \"nxt\": did you mean next?\n"})
}

// One dash or two, and a value after a blank or "=", are the same.
func TestFormsOfFlags(t *testing.T) {
	environment(t)
	p := host.Program{Work: work(), Now: spring}
	want := run(t.Context(), p, "next", "beat", "-n", "3", "--json")
	want.wants(t, "next", 0)
	for _, args := range []string{"-n=3 -json beat", "--n 3 beat --json=true", "--limit=3 --json beat", "--json --limit 3 -- beat", "beat -limit 3 -json=1"} {
		wantEqual(t, args, run(t.Context(), p, append([]string{"next"}, strings.Fields(args)...)...), want)
	}
}

// answers is a call of each command that can answer in JSON, and fields of its answer.
var answers = map[string]struct {
	args string
	want map[string]any
}{
	"tick":         {"", map[string]any{"app": "demo"}},
	"status":       {"", map[string]any{"app": "demo"}},
	"history":      {"beat", map[string]any{"app": "demo"}},
	"next":         {"", map[string]any{"app": "demo"}},
	"unlock":       {"beat --yes", map[string]any{"job": "beat", "unlocked": true, "lease": "leased"}},
	"pause":        {"beat --until 1h", map[string]any{"job": "beat"}},
	"resume":       {"beat", map[string]any{"job": "beat"}},
	"run":          {"beat --no-wait", map[string]any{"job": "beat"}},
	"cancel":       {"beat", map[string]any{"job": "beat"}},
	"backfill":     {"beat --from 2h --to 1h --all --dry-run", map[string]any{"job": "beat"}},
	"step-down":    {"beat", map[string]any{"job": "beat"}},
	"why":          {"beat", map[string]any{"app": "demo", "job": "beat", "cause": "overlap"}},
	"audit":        {"", map[string]any{"app": "demo"}},
	"wake":         {"", map[string]any{"app": "demo", "queue": "demo-alarm", "error": nil}},
	"sweep":        {"", map[string]any{"app": "demo", "error": nil}},
	"functions":    {"DIR --binary PROGRAM", map[string]any{}},
	"deploy-files": {"containerapp MODULE --package ./jobs", map[string]any{"kind": "containerapp", "app": "demo", "queue": "demo-alarm"}},
	"validate":     {"", map[string]any{"ok": true}},
	"doctor":       {"", map[string]any{"ok": true}},
}

// Each command that has --json answers with one JSON value and nothing else.
func TestAnswersInJSON(t *testing.T) {
	environment(t)
	for command := range strings.FieldsSeq(call(t, host.Program{}, "__complete").out) {
		if !strings.Contains(call(t, host.Program{}, "__complete "+command+" --").out, "--json\n") {
			continue
		}
		test, ok := answers[command]
		wantEqual(t, command+" has a test of --json", ok, true)
		p := host.Program{Work: work()[:1], Store: claimed(t, true, func(*record.Record) {}), Now: spring}
		if environment(t); command == "wake" {
			environment(t, "SOLOIST_ALARM=queue")
			p = host.WithQueue(p, &alarmtest.Queue{})
		}
		args := strings.NewReplacer("DIR", t.TempDir(), "MODULE", moduleDir(t), "PROGRAM", stand(t)).Replace(test.args)
		got := wantLines(t, p, command+" --json "+args, 0)
		var body map[string]any
		if err := json.Unmarshal([]byte(got.out), &body); err != nil {
			t.Errorf("%s: got %+v, %v, want one JSON object", command, got, err)
		}
		if command == "functions" {
			test.want["directory"] = strings.Fields(args)[0]
		}
		for name, want := range test.want {
			wantEqual(t, command, body[name], want)
		}
	}
}
