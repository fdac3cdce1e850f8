package logging

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/logqueue"
)

func TestDumpsHaveLines(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	const stacks = Dump("goroutine 1:\n\tmain\x1b[2J()\n\ngoroutine 2:\n")
	const lines = " code=3\n    goroutine 1:\n        main\\x1b[2J()\n\n    goroutine 2:\n"
	for name, terminal := range map[string]bool{"terminal": true, "text": false} {
		var b strings.Builder
		slog.New(New(&b, "text", slog.LevelInfo, terminal)).With("job", "late").Error("the process exits", "goroutines", stacks, "code", 3)
		if got := b.String(); !strings.HasSuffix(got, lines) || strings.Contains(got, "goroutines") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	var b strings.Builder
	slog.New(New(&b, "json", slog.LevelInfo, true)).Error("the process exits", "goroutines", stacks)
	if got := b.String(); !strings.Contains(got, `"goroutines":"goroutine 1:\n\tmain\u001b[2J()\n\ngoroutine 2:\n"`) {
		t.Errorf("JSON: got %s", got)
	}
}

func TestAttributesOnATerminal(t *testing.T) {
	var b strings.Builder
	log := slog.New(newTerminal(&b, slog.LevelInfo, false)).With("a", 1).WithGroup("g").With("b", 2)
	log.Info("hello\nthere", slog.Group("h", "c", "x y"), "d", time.Second, "e", "", "err", errors.New("a=b"))
	log.Debug("unseen")
	if _, got, _ := strings.Cut(b.String(), " "); got != `INF hello there a=1 g.b=2 g.h.c="x y" g.d=1s g.e="" g.err="a=b"`+"\n" {
		t.Errorf("got %s", got)
	}
}

// What is for programs is left out of lines of the core, and not of those of a job.
func TestTerminalLeavesOutNamesOfEvents(t *testing.T) {
	var b strings.Builder
	log := slog.New(newTerminal(&b, slog.LevelInfo, false)).With("job", "talk")
	log.Info(runEnded, "event", logqueue.EventName("run.ended"), "outcome", "succeeded", "took", time.Second, "took_ms", 1000)
	log.Info("said", "event", "run.ended", "took_ms", 1000)
	for _, want := range []string{" INF talk succeeded in 1s\n", " INF talk said event=run.ended took_ms=1000\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got no %q in %s", want, b.String())
		}
	}
}

// A job may log the words of the core. They are shown, since they have none of
// its attributes.
func TestJobLinesWithWordsOfCoreAreShown(t *testing.T) {
	var b strings.Builder
	log := slog.New(newTerminal(&b, slog.LevelInfo, false)).With("job", "talk")
	log.Info(runStarted, "machine", 7)
	log.Info(runEnded, "machine", 7)
	var got []string
	for row := range strings.Lines(b.String()) {
		_, text, _ := strings.Cut(row, " ")
		got = append(got, text)
	}
	want := []string{"INF talk run started machine=7\n", "INF talk run ended machine=7\n"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
