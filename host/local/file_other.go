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

// syncDir makes the names in a directory outlast a loss of power. Some file
// systems cannot be asked to; they say EINVAL or ENOTSUP.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
