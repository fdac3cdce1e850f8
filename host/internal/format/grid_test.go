package format_test

import (
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/format"
)

// Whatever is in a table, its lines have the width, and its columns begin one below the other.
func TestGrid(t *testing.T) {
	grid := func() *format.Grid {
		g := format.NewGrid("NAME\tSTATE\tMORE", 6, 5, 0)
		g.Row("beat", "idle", "-").Tone(format.Normal)
		g.Row("日本語の仕事", "failing\x1b\nx2", "é\u0301 1").Tone(format.Red).Below(".....")
		return g
	}
	for width, want := range map[int]string{
		100: "NAME          STATE           MORE\nbeat          idle            -\n日本語の仕事  failing\\x1b x2  é\u0301 1\n  .....\n",
		30:  "NAME          STATE\nbeat          idle\n日本語の仕事  failing\\x1b x2\n  .....\n",
		24:  "NAME         STATE\nbeat         idle\n日本語の仕…  failing\\x1…\n  .....\n",
		13:  "NAME    STATE\nbeat    idle\n日本…   fail…\n  .....\n",
		9:   "NAME\nbeat\n日本語の…\n  .....\n",
		1:   "…\n…\n…\n  .....\n",
	} {
		var b strings.Builder
		grid().Print(&b, width, false)
		if b.String() != want {
			t.Errorf("%d: got\n%s\nwant\n%s", width, b.String(), want)
		}
	}
	var b strings.Builder
	grid().Print(&b, 100, true)
	if plain := strings.NewReplacer("\x1b[31m", "", "\x1b[39m", "", "\x1b[0m", "").Replace(b.String()); strings.Count(b.String(), "\x1b[31m") != 1 || !strings.Contains(plain, "beat          idle            -\n") {
		t.Errorf("in colour: got %q", b.String())
	}
}

func TestWrapped(t *testing.T) {
	for text, want := range map[string]string{
		"a b":                   "a b\n",
		"":                      "\n",
		"one two three":         "one two\n  three\n",
		"  one two three":       "  one\n    two\n    thre\n    e\n",
		"https://example.com/x": "https://\n  exampl\n  e.com/\n  x\n",
		"日本語の仕事":                "日本語の\n  仕事\n",
	} {
		var b strings.Builder
		if format.Wrapped(&b, text, 8); b.String() != want {
			t.Errorf("%q: got %q, want %q", text, b.String(), want)
		}
	}
	var b strings.Builder
	format.Titled(&b, "name  ", "one two three", 13)
	if want := "name  one two\n      three\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
