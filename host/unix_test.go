//go:build unix

package host_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist"
)

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
		write(t, work, program, dir).wants(t, "functions", 1, place)
	}
	pipe := filepath.Join(t.TempDir(), "program")
	fifo(t, pipe)
	write(t, work, pipe, t.TempDir()).wants(t, "the program", 1, pipe+" is a named pipe")
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
