package postgres

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A process is a server that runs.
type process struct {
	cmd   *exec.Cmd
	stdin interface{ Close() error }
	done  chan struct{}
	log   *strings.Builder // to be read after done
}

// watched runs a command that is told to stop when standard input ends, so
// that it cannot outlive the test however that ends.
const watched = `exec 3<&0; (cat <&3; kill -INT $$) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null`

// spawn returns when the process of a command has written a line with the text ready.
func spawn(cmd *exec.Cmd, ready string) (*process, error) {
	cmd.Args = slices.Concat([]string{"sh", "-c", watched, "sh"}, cmd.Args)
	var err error
	if cmd.Path, err = exec.LookPath("sh"); err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, stdin, make(chan struct{}), new(strings.Builder)}
	found := make(chan struct{})
	go func() {
		defer close(p.done)
		waits := true
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.log.WriteString(lines.Text() + "\n")
			if waits && strings.Contains(lines.Text(), ready) {
				waits = false
				close(found)
			}
		}
	}()
	select {
	case <-found:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("it ended at once: %w", cmp.Or(p.stop(), errors.New(p.log.String())))
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill() // it may end meanwhile
		return nil, fmt.Errorf("it does not start: %w", p.stop())
	}
}

// stop returns when the process has ended, by itself or because standard input ends.
func (p *process) stop() error {
	p.stdin.Close()
	<-p.done
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.log)
	}
	return nil
}
