package safefile

import (
	"crypto/rand"
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
	return os.ReadFile(path)
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
	return root.ReadFile(name)
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
	err := root.WriteFile(temp, text, mode)
	if err == nil {
		err = root.Chmod(temp, mode) // as the umask may have taken bits away
	}
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
	}
	return err
}

// Temporary returns a new name for a file while it is written.
func Temporary(name string) string { return name + "." + rand.Text()[:8] + ".new" }
