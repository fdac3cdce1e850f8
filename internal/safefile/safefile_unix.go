//go:build !windows

package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Flags are for a caller that opens a file by other means than Open. The call
// does not follow a symbolic link, and does not wait for the other end of a pipe.
const Flags = syscall.O_NOFOLLOW | noWait

// noWait has an open call not wait for the other end of a pipe.
const noWait = syscall.O_NONBLOCK

// own gives what root has just made to the owner of the directory above it.
func own(f *os.File) error {
	if os.Geteuid() != 0 { // only root may, and what others make is theirs
		return nil
	}
	above, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	made, err := f.Stat()
	if err != nil {
		return err
	}
	want, ok1 := above.Sys().(*syscall.Stat_t)
	have, ok2 := made.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || want.Uid == have.Uid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("%w: the directory belongs to user %d and root cannot give files to that user: run as that user", err, want.Uid)
	}
	return nil
}

func ownDir(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(own(f), f.Close())
}
