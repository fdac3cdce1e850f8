// Package proctest runs replicas as processes, for tests that freeze, kill and
// replace them: it builds programs, with a mistake planted if a test wants one,
// starts them over a storage, reads what they print, and signals them.
//
// A fleet judges nothing: what may not happen is for the tests to say.
package proctest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Command says what a process runs.
type Command struct {
	Program string // its path
	Args    []string
	Dir     string
	Env     []string // on top of [Environ]

	// Stdout and Stderr get each line, from one goroutine each, until the process
	// is gone. nil: the line goes to standard error of this process.
	Stdout, Stderr func(line string)
}

// A Process is a started process.
type Process struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

// Start starts a process. A replica ends with this process, however that ends:
// see [Order].
func (c Command) Start() (*Process, error) {
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, append(Environ(), c.Env...)
	stdout, stderr := &lineWriter{each: c.Stdout}, &lineWriter{each: c.Stderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = time.Second // a child of the process may keep its output open
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("standard input of %s: %w", c.Program, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd, make(chan struct{})}
	go func() {
		defer close(p.gone)
		cmd.Wait() // the code says it all
		stdout.end()
		stderr.end()
	}()
	return p, nil
}

// Self is the program that runs now, for a replica that is the same program once
// more.
func Self() string {
	program, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return program
}

// Environ is the environment of this process without what a program of Soloist
// looks at.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return slices.ContainsFunc([]string{"SOLOIST_", "AzureWebJobs", "AzureFunctionsJobHost_", "CONTAINER_APP_", "WEBSITE_", "FUNCTIONS_", "KUBERNETES_"},
			func(prefix string) bool { return strings.HasPrefix(pair, prefix) })
	})
}

// Pid is the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Gone is closed when the process has ended and all that it printed was read.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Code is the exit code of a process that is gone; -1: a signal ended it.
func (p *Process) Code() int {
	<-p.gone
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process without notice and returns when it is gone.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // an error says that it is gone already
	<-p.gone
}

// Stop ends the process as a platform does, and returns an error if it takes
// longer than patience, or does not end with code 0.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if !p.GoneWithin(patience) {
		p.Kill()
		return fmt.Errorf("process %d did not stop within %s", p.Pid(), patience)
	}
	if code := p.Code(); code != 0 {
		return fmt.Errorf("process %d stopped with code %d", p.Pid(), code)
	}
	return nil
}

// GoneWithin waits for the end of the process.
func (p *Process) GoneWithin(patience time.Duration) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.gone:
		return true
	case <-t.C:
		return false
	}
}

// A lineWriter passes on whole lines.
type lineWriter struct {
	each func(string)
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		w.pass(line)
		w.rest = rest
	}
}

func (w *lineWriter) pass(line []byte) {
	text := strings.TrimSuffix(string(line), "\r")
	if w.each == nil {
		fmt.Fprintln(os.Stderr, text)
		return
	}
	w.each(text)
}

// end passes on what a process has not got to the end of.
func (w *lineWriter) end() {
	if len(w.rest) > 0 {
		w.pass(w.rest)
	}
}
