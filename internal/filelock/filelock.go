// Package filelock lets one process of a machine at a time pass, by an advisory
// lock on a file. The kernel drops the lock when its process dies.
//
// What is not promised: an order among those who wait, or anything on a network
// file system. A process that is stopped, not killed, keeps its lock.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/soloist-go/soloist/internal/safefile"
)

// Waiting starts with the length of a short critical section and doubles, so
// that neither a short wait nor a long one burns a core.
const (
	firstWait   = 250 * time.Microsecond
	longestWait = 8 * time.Millisecond
)

// Lock waits until it has the exclusive lock on the file at path, which it
// makes if need be, or until ctx ends; then the error wraps ctx.Err(). It
// excludes other processes and other goroutines alike. The directory must be
// there: fs.ErrNotExist. A file of another kind, such as a pipe or a symbolic
// link, is refused. Call unlock once; it leaves the file where it is, because
// removing it would let two in.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	if err := safefile.Regular(path); err != nil {
		return nil, err
	}
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("wait for lock %s: %w", path, err)
		}
		unlock, err := try(path)
		if unlock != nil || err != nil {
			return unlock, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// try returns nil and nil while somebody else has the lock.
func try(path string) (func() error, error) {
	f := flock.New(path, flock.SetFlag(os.O_RDONLY|safefile.Flags))
	ok, err := f.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, err
		}
		ok, err = f.TryLock()
	}
	if errors.Is(err, fs.ErrNotExist) { // removed since it was made
		return nil, nil
	}
	if err != nil || !ok {
		return nil, errors.Join(err, f.Close())
	}
	same, err := inPlace(f, path)
	if err != nil || !same {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// create makes the file, which TryLock does not.
func create(path string) error {
	f, err := safefile.Create(path)
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// inPlace reports whether the locked file still bears its name: whoever locks
// a file that somebody has removed excludes nobody.
func inPlace(f *flock.Flock, path string) (bool, error) {
	locked, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !locked.Mode().IsRegular() { // it has changed since Lock looked
		return false, safefile.Regular(path)
	}
	named, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(locked, named), err
}
