package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/local"
)

// ran is the log of some runs, on a terminal or not.
func ran(t *testing.T, terminal bool, env ...string) string {
	t.Helper()
	for _, name := range []string{"NO_COLOR", "SOLOIST_LOG_FORMAT", "SOLOIST_LOG_LEVEL", "SOLOIST_STORAGE", "SOLOIST_APP"} {
		t.Setenv(name, "")
	}
	t.Setenv("TERM", "xterm")
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	var out, log strings.Builder
	synctest.Test(t, func(t *testing.T) {
		p := Program{Name: "demo", Args: []string{"tick"}, Store: &local.Memory{}, Stdout: &out, Stderr: &log, terminal: terminal, Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
				time.Sleep(1500 * time.Millisecond)
				return nil
			}},
			soloist.Job{Name: "broke", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
				return errors.New("no paper \x1b[2J\u202e and \\x1b[2J")
			}},
		}}
		p.Run(t.Context())
		time.Sleep(time.Minute)
		p.Run(t.Context())
	})
	return log.String()
}

func TestOneLineARunOnATerminal(t *testing.T) {
	got := ran(t, true, "NO_COLOR=1")
	clock := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC).Local().Format("15:04:")
	// One second after the tick: the first run of a record waits for its token.
	want := clock + `01 WRN broke failed in 0s reason="no paper \x1b[2J\u202e and \\x1b[2J"` + "\n" + clock + "02 INF beat succeeded in 1.5s\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := ran(t, true, "NO_COLOR=1", "SOLOIST_LOG_LEVEL=debug"); strings.Count(got, "run started") != 2 {
		t.Errorf("at level debug: got\n%s", got)
	}
}

func TestColoursOnATerminal(t *testing.T) {
	got := ran(t, true)
	for _, want := range []string{" \x1b[32mINF\x1b[0m \x1b[1mbeat\x1b[0m \x1b[32msucceeded\x1b[0m in 1.5s\n", " \x1b[1mbroke\x1b[0m \x1b[31mfailed\x1b[0m in 0s "} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%q", want, got)
		}
	}
	if strings.Contains(got, "\x1b[2J") || strings.Contains(got, "\u202e") {
		t.Errorf("a text of a job reaches the terminal: %q", got)
	}
	for _, without := range []string{ran(t, true, "TERM=dumb"), ran(t, false), ran(t, false, "SOLOIST_LOG_FORMAT=text")} {
		if strings.Contains(without, "\x1b") {
			t.Errorf("got colours in %q", without)
		}
	}
}

// Where a collector reads the log, nothing has changed.
func TestOtherLogsStayAsTheyAre(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		got := ran(t, terminal, "SOLOIST_LOG_FORMAT=json")
		if strings.Count(got, "\n") != 4 || !strings.Contains(got, `"msg":"run ended","job":"beat","replica":"`) || !strings.Contains(got, `"took":"1.5s"`) {
			t.Errorf("JSON: got %s", got)
		}
	}
	if got := ran(t, false, "SOLOIST_LOG_FORMAT=text"); strings.Count(got, "\n") != 4 || !strings.Contains(got, `msg="run ended" job=beat replica=`) {
		t.Errorf("text: got %s", got)
	}
}

// A failing job is red, and its row stays in line with the others.
func TestStatusInColour(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	var out strings.Builder
	a := &app.App{Console: app.Console{Stdout: &out, Terminal: true}, Now: time.Now, Scheduler: &soloist.Scheduler{}}
	printStatus(a, a.Console, []view.Job{{Name: "a", State: view.Idle}, {Name: "b", State: view.Failing, Failures: 3}}, nil, nil)
	var column []int
	for row := range strings.Lines(out.String()) {
		if plain := strings.NewReplacer("\x1b[31m", "", "\x1b[39m", "", "\x1b[0m", "").Replace(row); plain != row {
			column = append(column, strings.Index(plain, "LAST")+strings.Index(plain, "  -  "))
		}
	}
	if !strings.Contains(out.String(), "\x1b[31mfailing x3\x1b[0m") || len(column) != 3 || column[1] != column[2] {
		t.Errorf("got %q, columns %v", out.String(), column)
	}
}

// On a terminal a status takes the place of the one before, without a flicker: only
// the first erases the screen.
func TestWatchRedrawsTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var out strings.Builder
	a := &app.App{Console: app.Console{Stdout: &out, Terminal: true}, Now: time.Now, Scheduler: &soloist.Scheduler{}, Place: "a store"}
	s := &screen{a: a}
	for range 2 {
		if !s.show([]view.Job{{Name: "beat", Kind: "singleton"}}, nil) {
			t.Fatal("not shown")
		}
	}
	frames := strings.Split(out.String(), "\x1b[H")
	if len(frames) != 3 || frames[0] != "\x1b[2J" {
		t.Fatalf("got %q, want two frames", out.String())
	}
	for _, line := range strings.SplitAfter(strings.TrimSuffix(frames[2], "\x1b[J"), "\n") {
		if line != "" && !strings.HasSuffix(line, "\x1b[K\n") {
			t.Errorf("got the line %q: what was in it before stays", line)
		}
	}
	if !strings.HasSuffix(frames[2], "\x1b[J") || !strings.Contains(frames[2], "beat  (singleton)") {
		t.Errorf("got %q", frames[2])
	}
}
