//go:build !windows

package local

import (
	"errors"
	"os"
	"syscall"
)

const (
	diskFull  = syscall.ENOSPC
	quotaFull = syscall.EDQUOT
)

// openDir opens a directory for flush.
func openDir(path string) (*os.File, error) { return os.Open(path) }

// flush makes the names in a directory outlast a loss of power, and closes it.
// Some file systems cannot be asked to; they say EINVAL or ENOTSUP.
func flush(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
