//go:build unix

// Package again starts the program that runs once more, as a replica: a process
// of its own, with the settings that it is given alone.
package again

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Command returns a command whose environment is that of this process, without
// the settings of Soloist, and more. Its standard input is a pipe from here.
func Command(more ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "SOLOIST_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, more...)
	if _, err := cmd.StdinPipe(); err != nil { // cmd keeps its end open
		return nil, fmt.Errorf("standard input of %s: %w", program, err)
	}
	return cmd, nil
}

// EndWithStarter ends this process when the one that has started it is gone.
func EndWithStarter() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}
