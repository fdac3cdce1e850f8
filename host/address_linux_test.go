package host_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

// In a container a loopback address reaches nothing but the container, so the
// program, as its first process, listens on all addresses and says who can read.
func TestFirstProcessOfContainerListensOnAllAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		env  []string
		url  string
		warn bool
	}{
		{"alone", nil, "http://localhost:8080/", true},
		{"with a read token", []string{"SOLOIST_READ_TOKEN=" + readToken}, "http://localhost:8080/", false},
		{"with an address", []string{"SOLOIST_ADDR=127.0.0.1:8090"}, "http://127.0.0.1:8090/", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := contained(t, append(test.env, "SOLOIST_STORAGE=memory:")...)
			warned := false
			for m := range p.log {
				warned = warned || m.Level == "WARN" && strings.Contains(m.Msg, "set SOLOIST_READ_TOKEN, or SOLOIST_ADDR to a loopback address")
				if m.Msg != "listening" {
					continue
				}
				if m.URL != test.url || warned != test.warn {
					t.Errorf("got %s, warned %t, want %s, warned %t", m.URL, warned, test.url, test.warn)
				}
				return
			}
			t.Error("the program ended without listening")
		})
	}
}

// contained starts the program as the first process of a process name space and
// with a network of its own, as a container has them.
func contained(t *testing.T, env ...string) process {
	t.Helper()
	flags := uintptr(syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET)
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if err := probe.Run(); err != nil {
		t.Skipf("this machine allows no name spaces: %v", err)
	}
	cmd := exec.Command(proctest.Self())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return startCommand(t, cmd, append([]string{"TEST_PROGRAM=beat"}, env...))
}
