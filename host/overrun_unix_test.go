//go:build unix

package host_test

import (
	"context"
	"syscall"
	"testing"
	"time"

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
