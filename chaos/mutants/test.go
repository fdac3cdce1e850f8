package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

type verdict string

const (
	caught  verdict = "caught"
	endless verdict = "TIMED OUT"
	invalid verdict = "invalid" // does not compile
	alive   verdict = "ALIVE"
)

// test plants one mistake, by an overlay that leaves the source alone, and runs
// the tests that should notice it. detail is what else there is to tell.
func test(ctx context.Context, root string, m mutant, timeout time.Duration) (v verdict, detail string) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return invalid, err.Error()
	}
	defer os.RemoveAll(dir)
	overlay, err := m.plant(root, dir)
	if err != nil {
		return invalid, err.Error()
	}
	t := targets[m.target]
	own := "./" + filepath.ToSlash(t.dir)
	if goCommand(ctx, root, timeout, io.Discard, "build", "-overlay", overlay, own) != nil {
		return invalid, ""
	}
	for _, args := range append([][]string{{own}}, t.more...) {
		args = append([]string{"test", "-overlay", overlay, "-short", "-failfast", "-vet=off", "-timeout", timeout.String()}, args...)
		var r reader
		if err := goCommand(ctx, root, timeout, &r, args...); err != nil {
			return r.judge(err)
		}
	}
	return alive, ""
}

// plant writes the mutant's file and an overlay that has the go command take it
// for the real one.
func (m mutant) plant(root, dir string) (overlay string, err error) {
	real := filepath.Join(root, m.file)
	source, err := os.ReadFile(real)
	if err != nil {
		return "", err
	}
	if string(source[m.from:m.to]) != m.old {
		return "", errors.New("the source has changed meanwhile")
	}
	mistaken := slices.Concat(source[:m.from], []byte(m.new), source[m.to:])
	return proctest.Overlay(dir, map[string][]byte{real: mistaken})
}

// compiling is for how long the go command may compile before the tests start.
const compiling = 3 * time.Minute

// goCommand runs the go command. The error wraps context.DeadlineExceeded if it
// does not end by itself. A mistake can make a test hang or fork: its whole
// process group is killed then.
func goCommand(ctx context.Context, root string, timeout time.Duration, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, compiling+timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}
