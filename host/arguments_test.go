package host_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	"deploy-files functions ":  nil, // files
}

// Settings that are wrong do not matter, nor does a storage out of reach.
func TestCompletions(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong")
	p := host.Program{Work: work(), Store: down()}
	for line, want := range completions {
		words := strings.Split(line, " ")
		got := run(t.Context(), p, append([]string{"__complete"}, words...)...)
		if all := strings.Fields(got.out); !slices.Equal(all, want) || got.code != 0 || got.err != "" {
			t.Errorf("%q: got %+v, want %q", line, got, want)
		}
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
	got := run(t.Context(), host.Program{}, "completion", "tcsh")
	if want := `demo: completion: SHELL must be one of "bash","zsh","fish" but got "tcsh"`; got.code != 2 || !strings.HasPrefix(got.err, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func TestWrongArguments(t *testing.T) {
	environment(t)
	for _, test := range []struct{ args, want string }{
		{"bogus", `demo: unknown command "bogus"`},
		{"stauts", `demo: unknown command "stauts": did you mean status?`},
		{"serve now", `demo: serve: unexpected argument "now"`},
		{"status --jsno", "demo: status: unknown flag --jsno: did you mean --json?"},
		{"serve --json", "demo: serve: unknown flag --json: it takes none"},
		{"tick beat", `demo: tick: unexpected argument "beat"`},
		{"pause", "demo: pause: which job?"},
		{"unlock", "demo: unlock: of which job?"},
		{"unlock --now", "demo: unlock: of which job?"},
		{"unlock beat leader", `demo: unlock: unexpected argument "leader"`},
		{"status --now", "demo: status: unknown flag --now: want --watch, --locks, --json"},
		{"history --at 2026-03-29", "demo: history: unknown flag --at: want --job, --since, --outcome, -n, --why, --json"},
		{"validate -n 3", "demo: validate: unknown flag -n: want --json"},
		{"next -n x", `demo: next: --limit: "x" is no number from 1 to 1000`},
		{"next -n 0", `demo: next: --limit: "0" is no number from 1 to 1000`},
		{"history -n 1001", `demo: history: --limit: "1001" is no number from 1 to 1000`},
		{"next --at", "demo: next: --at needs a value"},
		{"next -é", "demo: next: unknown flag -é: want -n, --at, --tz, --schedule, --json"},
		{"status --json=perhaps", `demo: status: --json: bool value must be true, 1, yes, false, 0 or no but got "perhaps"`},
		{"--json", "demo: unknown flag --json: flags follow the command"},
		{"-", `demo: unknown command "-"`},
		{"next beat leader", `demo: next: unexpected argument "leader"`},
	} {
		got := run(t.Context(), host.Program{Work: work()}, strings.Fields(test.args)...)
		if got.code != 2 || got.out != "" || got.err != test.want+"\ndemo help lists the commands\n" {
			t.Errorf("%s: got %+v, want code 2, %q and where the commands are", test.args, got, test.want)
		}
	}
	p := host.Program{Work: work(), Store: down(), Now: spring}
	for args, want := range map[string]string{
		"next leader":                         "there is no job \"leader\": want one of beat, night-report\n",
		"history nobody":                      "there is no job \"nobody\": want one of beat, night-report, leader\n",
		"history --since tomorrow":            `history: --since is "tomorrow": want a span such as 90m, 24h or 7d, a date such as 2026-03-29, or an instant such as 2026-03-29T01:00:00Z`,
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
		"pause beat --until yesterday":        `pause: --until is "yesterday": want a span such as`,
		"pause beat --until 2020-01-01":       `pause: --until is "2020-01-01": want a time to come`,
		"run beat --until 0s":                 `run: --until is "0s": want a span`,
		"audit nobody":                        `there is no job "nobody"`,
		"audit --since x":                     `audit: --since is "x": want a span`,
		"next --at tomorrow":                  `next: --at is "tomorrow": want a date such as 2026-03-29, or an instant such as 2026-03-29T01:00:00Z`,
		"next --at=":                          `next: --at is "": want a date`,
		"next --at 2026-02-30":                `next: --at is "2026-02-30": want a date`,
		"next --tz Mars/Olympus":              `next: --tz "Mars/Olympus" is unknown; want an IANA name such as Europe/Berlin, or UTC`,
		"next --tz=":                          `next: --tz "" is empty; want an IANA name`,
		"next --schedule TZ=UTC":              `next: --schedule "TZ=UTC": byte 6: nothing after the prefix`,
	} {
		got := run(t.Context(), p, strings.Fields(args)...)
		if got.code != 2 || got.out != "" || !strings.HasPrefix(got.err, "demo: "+want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: got %+v, want code 2 and %q", args, got, want)
		}
	}
	got := run(t.Context(), p, strings.Fields("history x --since y --outcome z")...)
	if got.code != 2 || strings.Count(got.err, "\n") != 3 {
		t.Errorf("all at once: got %+v", got)
	}
}

func TestHelp(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong") // who asks for help may have it wrong
	for _, args := range []string{"help", "--help", "-h", "-help"} {
		got := run(t.Context(), host.Program{}, strings.Fields(args)...)
		if got.code != 0 || got.err != "" {
			t.Errorf("%s: got %+v", args, got)
		}
		for _, want := range []string{"serve", "tick", "status", "history", "next", "unlock", "validate", "help", "SOLOIST_APP", "SOLOIST_STORAGE", "SOLOIST_CONTAINER",
			"SOLOIST_LEASE", "SOLOIST_ADDR", "SOLOIST_GRACE", "SOLOIST_HISTORY", "SOLOIST_READ_TOKEN", "SOLOIST_ADMIN_TOKEN", "SOLOIST_LOG_FORMAT", "SOLOIST_LOG_LEVEL",
			"SOLOIST_JOB_<NAME>_SCHEDULE", "SOLOIST_JOB_<NAME>_TIMEZONE", "SOLOIST_JOB_<NAME>_PAUSED", "SOLOIST_JOB_<NAME>_PING",
			"SOLOIST_ALERT_WEBHOOK", "SOLOIST_ALERT_SECRET", "SOLOIST_ALERT_FAILURES"} {
			wantText(t, args, got.out, "\n  "+want+" ")
		}
		wantText(t, args, got.out, "\n3, in Functions 200: ", `"overrun"`)
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
	args []string
	want map[string]any
}{
	"tick":         {nil, map[string]any{"app": "demo"}},
	"status":       {nil, map[string]any{"app": "demo"}},
	"history":      {[]string{"beat"}, map[string]any{"app": "demo"}},
	"next":         {nil, map[string]any{"app": "demo"}},
	"unlock":       {[]string{"beat", "--yes"}, map[string]any{"job": "beat", "unlocked": true, "lease": "leased"}},
	"pause":        {[]string{"beat", "--until", "1h"}, map[string]any{"job": "beat"}},
	"resume":       {[]string{"beat"}, map[string]any{"job": "beat"}},
	"run":          {[]string{"beat", "--no-wait"}, map[string]any{"job": "beat"}},
	"cancel":       {[]string{"beat"}, map[string]any{"job": "beat"}},
	"backfill":     {[]string{"beat", "--from", "2h", "--to", "1h", "--all", "--dry-run"}, map[string]any{"job": "beat"}},
	"step-down":    {[]string{"beat"}, map[string]any{"job": "beat"}},
	"why":          {[]string{"beat"}, map[string]any{"app": "demo", "job": "beat", "cause": "overlap"}},
	"audit":        {nil, map[string]any{"app": "demo"}},
	"wake":         {nil, map[string]any{"app": "demo", "queue": "demo-alarm", "error": nil}},
	"sweep":        {nil, map[string]any{"app": "demo", "error": nil}},
	"functions":    {[]string{"DIR"}, map[string]any{"directory": "DIR"}},
	"deploy-files": {[]string{"containerapp", "MODULE", "--package", "./jobs"}, map[string]any{"kind": "containerapp", "app": "demo", "queue": "demo-alarm"}},
	"validate":     {nil, map[string]any{"ok": true}},
	"doctor":       {nil, map[string]any{"ok": true}},
}

// Each command that has --json answers with one JSON value and nothing else.
func TestAnswersInJSON(t *testing.T) {
	environment(t)
	for command := range strings.Lines(run(t.Context(), host.Program{}, "__complete", "").out) {
		command = strings.TrimSpace(command)
		if !strings.Contains(run(t.Context(), host.Program{}, "__complete", command, "--").out, "--json\n") {
			continue
		}
		test, ok := answers[command]
		if !ok {
			t.Errorf("%s has --json and no test of it", command)
			continue
		}
		p := host.Program{Work: work()[:1], Store: claimed(t, true, func(*record.Record) {}), Now: spring}
		if environment(t); command == "wake" {
			environment(t, "SOLOIST_ALARM=queue")
			p = host.WithQueue(p, &alarmtest.Queue{})
		}
		args := []string{command, "--json"}
		for _, arg := range test.args {
			if arg == "DIR" {
				arg = t.TempDir()
				test.want["directory"] = arg
				args = append(args, "--binary", stand(t))
			}
			if arg == "MODULE" {
				arg = moduleDir(t)
			}
			args = append(args, arg)
		}
		got := run(t.Context(), p, args...)
		var body map[string]any
		if err := json.Unmarshal([]byte(got.out), &body); err != nil || got.code != 0 {
			t.Errorf("%s: got %+v, %v, want one JSON object", command, got, err)
		}
		for name, want := range test.want {
			wantEqual(t, command, body[name], want)
		}
	}
}
