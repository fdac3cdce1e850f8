package host_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A log whose reader has gone ends no program that runs jobs: a signal
// still stops it gracefully.
func TestLogWithoutReaderEndsNoProgram(t *testing.T) {
	nightly.Only(t, "starts the program as a process")
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGPIPE on Windows")
	}
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(proctest.Self())
	cmd.Env = append(proctest.Environ(), "TEST_PROGRAM=beat", "SOLOIST_STORAGE=memory:", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s")
	cmd.Stdout, cmd.Stderr = w, t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer kill.Stop()
	w.Close()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Error(err)
	}
	r.Close()
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ends with %v", err)
	}
}
