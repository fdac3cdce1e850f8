package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

// What may follow, by the words before: the last is empty where a blank is last.
var completions = map[string][]string{
	"":                         {"serve", "tick", "status", "history", "next", "pause", "resume", "run", "cancel", "backfill", "step-down", "audit", "unlock", "wake", "sweep", "functions", "deploy-files", "validate", "doctor", "completion", "help"},
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
	if got := run(t.Context(), p, "__complete"); got.code != 0 || !strings.HasPrefix(got.out, "serve\n") {
		t.Errorf("without words: got %+v", got)
	}
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
