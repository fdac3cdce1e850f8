package azurite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/soloist-go/soloist/internal/filelock"
)

// install runs npm ci in dir unless that was done for this lock file. The
// packages of one go test run do this at the same time, hence the lock; its
// file lies beside node_modules, which npm ci removes.
func install(ctx context.Context, dir string) (err error) {
	unlock, err := filelock.Lock(ctx, filepath.Join(dir, ".install.lock"))
	if err != nil {
		return fmt.Errorf("install azurite: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()

	// The mark is written last: what an interrupted npm left is not taken.
	mark := filepath.Join(dir, "node_modules", ".installed")
	want, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("install azurite: %w", err)
	}
	if got, err := os.ReadFile(mark); err == nil && bytes.Equal(got, want) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("install azurite: %w", err)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return ErrNoNode
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install azurite: npm ci: %w: %s", err, out)
	}
	return os.WriteFile(mark, want, 0o644)
}
