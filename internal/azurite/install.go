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
)

// install runs npm ci for dir unless that was done for this lock file. The packages of one go test run may do this at
// the same time: each has a directory of its own, and the result takes its name at once.
func install(ctx context.Context, dir string) error {
	err := installed(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = publish(ctx, dir)
	}
	if err != nil && !errors.Is(err, ErrNoNode) {
		return fmt.Errorf("install azurite: %w", err)
	}
	return err
}

// installed returns fs.ErrNotExist if dir has no node_modules for its lock file.
func installed(dir string) error {
	want, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("%w: %v", fs.ErrInvalid, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "node_modules", mark))
	if err == nil && !bytes.Equal(got, want) {
		return fs.ErrNotExist
	}
	return err
}

// mark is the last file of an installation: what an interrupted npm left does not have it.
const mark = ".installed"

// publish installs into a temporary directory in dir, which then takes the name node_modules.
func publish(ctx context.Context, dir string) (err error) {
	temp, err := os.MkdirTemp(dir, ".install.")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	made, place := filepath.Join(temp, "node_modules"), filepath.Join(dir, "node_modules")
	err = errors.Join(copyFile(dir, "package.json", temp), copyFile(dir, "package-lock.json", temp))
	if err == nil {
		err = npm(ctx, temp)
	}
	if err == nil {
		err = os.Link(filepath.Join(temp, "package-lock.json"), filepath.Join(made, mark))
	}
	if err != nil {
		return err
	}
	if installed(dir) != nil {
		_ = os.Rename(place, filepath.Join(temp, "old"))
	}
	if err := os.Rename(made, place); err != nil && installed(dir) != nil { // else another process was faster
		return err
	}
	return nil
}

func copyFile(from, name, to string) error {
	text, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), text, 0o644)
}

func npm(ctx context.Context, dir string) error {
	path, err := exec.LookPath("npm")
	if err != nil {
		return ErrNoNode
	}
	cmd := exec.CommandContext(ctx, path, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return nil
}
