// Package safefile opens and makes files in a directory that processes of
// several users may reach: an unexpected kind of file is refused before it
// blocks a call or leads elsewhere, and what root makes belongs to the owner of
// the directory, so that root does not lock that user out.
package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Regular returns an error if there is something at path that is not a regular
// file. It does not follow a symbolic link. No file at all is no error.
func Regular(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return regular(path, info)
}

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is %s, not a regular file: move it away", path, kind(info.Mode()))
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m.IsRegular():
		return "a file"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) {
	if err := Regular(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|Flags, 0) // Flags, because the file may have changed since
	return checked(path, f, err)
}

// checked looks once more what a file is, as that may have changed before it was opened.
func checked(name string, f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List returns what is in a directory, in no order. It does not follow a symbolic link.
func List(path string) (all []fs.DirEntry, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|Flags, 0)
	if err == nil {
		all, err = f.ReadDir(-1)
		err = errors.Join(err, f.Close())
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return all, err
	}
	if info, look := os.Lstat(path); look == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is %s, not a directory: move it away", path, kind(info.Mode()))
	}
	return nil, err
}

// Create makes a file for writing that only its owner may use. fs.ErrExist:
// there is something at path, if only a symbolic link.
func Create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	if err := own(f); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

// Mkdir makes a directory, and those above it that are missing. It returns those
// that it has made, the topmost first.
func Mkdir(path string) (made []string, err error) {
	if there, err := isDir(path); there || err != nil {
		return nil, err
	}
	if parent := filepath.Dir(path); parent != path {
		if made, err = Mkdir(parent); err != nil {
			return made, err
		}
	}
	err = os.Mkdir(path, dirMode)
	if errors.Is(err, fs.ErrExist) { // another process was first, or it is a link to nothing
		if there, err := isDir(path); there || err != nil {
			return made, err
		}
		return made, fmt.Errorf("%s is there and leads to no directory: move it away", path)
	}
	if err == nil {
		err = ownDir(path)
	}
	return append(made, path), err
}

func isDir(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	return true, nil
}
