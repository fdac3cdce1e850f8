package host_test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

// In a container a loopback address reaches nothing but the container, so the program, as its first process, listens on all
// addresses and says who can read.
func TestFirstProcessOfContainerListensOnAllAddresses(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(proctest.Self())
	// The first process of a process name space, with a network of its own, as in a container.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = cmd.SysProcAttr
	if err := probe.Run(); err != nil {
		t.Skipf("this machine allows no name spaces: %v", err)
	}
	p := startCommand(t, cmd, []string{"TEST_PROGRAM=beat", "SOLOIST_STORAGE=memory:"})
	await(t, p.log, "everybody who reaches")
	wantEqual(t, "URL", await(t, p.log, "listening").URL, "http://localhost:8080/")
}
