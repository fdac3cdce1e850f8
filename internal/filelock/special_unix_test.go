//go:build !windows

package filelock_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/internal/filelock"
)

// Only a regular file serves as a lock: the call neither waits for a writer of a
// pipe nor makes a file at the end of a link.
func TestLockRefusesWhatIsNotARegularFile(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, put := range map[string]func(path string) error{
		"a named pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory":             func(path string) error { return os.Mkdir(path, 0o700) },
		"a symbolic link":         func(path string) error { return os.Symlink(elsewhere, path) },
		"a symbolic link, to one": func(path string) error { return os.Symlink(file, path) },
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			unlock, err := filelock.Lock(t.Context(), path)
			if err == nil {
				unlock()
				t.Fatal("it was locked")
			}
			kind, _, _ := strings.Cut(what, ",")
			if text := err.Error(); !strings.Contains(text, path+" is "+kind) || !strings.Contains(text, "move it away") {
				t.Errorf("got %v, want the path, what it is and what to do", err)
			}
			if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file was made at the end of the link: %v", err)
			}
		})
	}
}
