//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

func TestWrongClockIsWrongInTheWholeProgram(t *testing.T) {
	files, err := skewed()
	if err != nil {
		t.Fatal(err)
	}
	program, err := proctest.BuildOver(t.TempDir(), "bench/testdata/clock", false, files)
	if err != nil {
		t.Fatal(err)
	}
	for skew, want := range map[string]string{"": "0s", "5h0m0.4s": "5h0m0s", "-5h0m0.9s": "-5h0m0s"} {
		cmd := exec.Command(program, time.Now().Format(time.RFC3339Nano))
		cmd.Env = append(os.Environ(), "BENCH_SKEW="+skew)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != want || err != nil {
			t.Errorf("BENCH_SKEW=%s: got %q, %v, want %q", skew, got, err, want)
		}
	}
}
