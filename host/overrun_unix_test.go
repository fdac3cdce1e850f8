//go:build unix

package host_test

import (
	"syscall"
	"testing"
	"time"
)

// A process that was suspended finds its lease gone when it wakes up.
func TestSuspendedProcessWithoutLeaseExits(t *testing.T) {
	first, other, _, _ := strays(t)
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, other.log, "run started")
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	woken := time.Now()
	wantExit(t, first, 3)
	if took := time.Since(woken); took > oneLease {
		t.Errorf("the process was gone after %s, want less than its lease", took)
	}
}
