package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is a module with one package that is a target, and one function.
func small(t *testing.T) (root string, plant func(old, new string) mutant) {
	root = t.TempDir()
	const name, source = "internal/schedule/x.go", `package schedule

func Count(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum++
	}
	return sum + 0
}
`
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n",
		name:     source,
		"internal/schedule/x_test.go": `package schedule

import "testing"

func TestCount(t *testing.T) {
	if got := Count(3); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}
`} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root, func(old, new string) mutant {
		from := strings.Index(source, old)
		return mutant{target: len(targets) - 1, file: name, from: from, to: from + len(old), old: old, new: new}
	}
}

func TestVerdicts(t *testing.T) {
	root, plant := small(t)
	for _, c := range []struct {
		old, new string
		timeout  time.Duration
		want     verdict
	}{
		{"i < n", "i <= n", time.Minute, caught},
		{"i++", "", 100 * time.Millisecond, endless}, // for good, however long the timeout
		{"sum++", "sum = nil", time.Minute, invalid},
		{"+ 0", "- 0", time.Minute, alive},
	} {
		got, detail := test(t.Context(), root, plant(c.old, c.new), c.timeout)
		if got != c.want {
			t.Errorf("%s -> %s: got %s, want %s", c.old, c.new, got, c.want)
		}
		if names := strings.Contains(detail, "TestCount"); names != (c.want == endless) {
			t.Errorf("%s -> %s: the detail is %q", c.old, c.new, detail)
		}
	}
}

func TestInterruptionIsNoVerdict(t *testing.T) {
	root, _ := small(t)
	c, err := draw(root, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c.one(ctx, 0); len(c.counts) > 0 {
		t.Errorf("got %v", c)
	}
	if err := c.run(ctx, 0, 3, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// Each mutant of the small module gets a verdict, and the first is left out.
func TestSummary(t *testing.T) {
	root, _ := small(t)
	c, err := draw(root, 1, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(t.Context(), 1, math.MaxInt, 2); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, n := range c.counts {
		got += n
	}
	if want := len(c.all) - 1; got != want || want < 3 {
		t.Errorf("got %v, want %d verdicts", c, want)
	}
	c.counts = map[verdict]int{caught: 5, endless: 2, invalid: 1, alive: 3}
	if want := "11 mutants: 5 caught, 2 timed out, 1 invalid, 3 survived"; c.String() != want {
		t.Errorf("got %q, want %q", c, want)
	}
}

func TestJudge(t *testing.T) {
	const timeout = "panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestA (1m0s)\n\t\tTestB (3s)\n\ngoroutine 9 [running]:\n"
	for name, c := range map[string]struct {
		out    string
		err    error
		want   verdict
		detail string
	}{
		"a failure":                   {"--- FAIL: TestA (0.00s)\n", io.EOF, caught, ""},
		"a panic":                     {"panic: deadlock\n", io.EOF, caught, ""},
		"a time-out":                  {timeout, io.EOF, endless, "TestA (1m0s), TestB (3s)"},
		"a time-out after a failure":  {"--- FAIL: TestA (0.00s)\n" + timeout, io.EOF, caught, ""},
		"killed without a word":       {"", context.DeadlineExceeded, endless, "unknown"},
		"killed after a failure":      {"--- FAIL: TestA (0.00s)\n", context.DeadlineExceeded, caught, ""},
		"a long line before the rest": {strings.Repeat("x", 1<<20) + "\n" + timeout, io.EOF, endless, "TestB (3s)"},
	} {
		for _, size := range []int{1, 1 << 20} { // of one Write
			var r reader
			for b := range slices.Chunk([]byte(c.out), size) {
				if _, err := r.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			got, detail := r.judge(c.err)
			if got != c.want || !strings.Contains(detail, c.detail) {
				t.Errorf("%s: got %s, %q, want %s, %q", name, got, detail, c.want, c.detail)
			}
		}
	}
}
