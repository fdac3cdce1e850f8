//go:build unix

package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// A process that was suspended finds its lease gone when it wakes up.
func TestSuspendedProcessWithoutLeaseExits(t *testing.T) {
	t.Parallel()
	first, other, dir, _ := strays(t)
	suspend(t, first, dir)
	await(t, other.log, "run started")
	must(t, first.Process.Signal(syscall.SIGCONT))
	woken := time.Now()
	wantExit(t, first, 3)
	if took := time.Since(woken); took > 30*time.Second { // else it would run on for a minute
		t.Errorf("the process was gone after %s", took)
	}
}

// suspend stops a process while it does not hold the lock of its entry's file. A stopped process keeps
// that lock, and all others would wait for it.
func suspend(t *testing.T, p process, dir string) {
	t.Helper()
	for range 100 {
		must(t, p.Process.Signal(syscall.SIGSTOP))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := (local.Dir{Path: dir}).Read(ctx, "demo/stray")
		cancel()
		if err == nil {
			return
		}
		must(t, p.Process.Signal(syscall.SIGCONT))
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal("the process holds the lock whenever it is stopped")
}

// Nothing ever writes to these pipes, so a command that reads one would never end.
func TestDeploymentFilesArePipes(t *testing.T) {
	environment(t)
	work := jobs(soloist.Job{Name: "night"})
	for _, place := range []string{"strange", ".soloist-functions.json", "host.json", "night/function.json"} {
		dir, program := t.TempDir(), stand(t)
		if place != "strange" {
			write(t, work, program, dir)
			os.Remove(filepath.Join(dir, place))
		}
		fifo(t, filepath.Join(dir, place))
		if got := write(t, work, program, dir); got.code != 1 || !strings.Contains(got.err, place) {
			t.Errorf("%s: got %+v", place, got)
		}
	}
	pipe := filepath.Join(t.TempDir(), "program")
	fifo(t, pipe)
	if got := write(t, work, pipe, t.TempDir()); got.code != 1 || !strings.Contains(got.err, pipe+" is a named pipe") {
		t.Errorf("the program: got %+v", got)
	}
}

// fifo makes a named pipe. Whoever reads from it finds its end at once, so that a test fails and does not hang.
func fifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			f.Close()
		}
	}()
	t.Cleanup(func() {
		if f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			<-done
			f.Close()
		}
	})
}
