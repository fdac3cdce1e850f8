package safefile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

// Whole files: of a path that a user names, and in a directory that a command writes.

// Leads returns an error unless path leads to a regular file. It follows links.
func Leads(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return regular(path, info)
}

// Read returns the content of a regular file. It follows links.
func Read(path string) ([]byte, error) {
	if err := Leads(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	return all(checked(path, f, err))
}

// ReadIn returns the content of a regular file in a directory. It follows no link to it.
func ReadIn(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	return all(checked(name, f, err))
}

// all reads and closes a file that was opened.
func all(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteIn replaces a file in a directory at once, and makes the directories above it. A link in its place is
// replaced, not followed. A call that is killed may leave a file of [Temporary].
func WriteIn(root *os.Root, name string, text []byte, mode fs.FileMode) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	temp := Temporary(name)
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(text))
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil { // Chmod, as the umask may have taken bits away
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
	}
	return err
}

// Temporary returns a new name for a file while it is written.
func Temporary(name string) string { return name + "." + rand.Text()[:8] + ".new" }
