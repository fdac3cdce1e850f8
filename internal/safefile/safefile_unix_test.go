//go:build !windows

package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/internal/safefile"
)

// Another process may replace a file between the look at it and its opening.
func TestFlagsNeitherFollowNorWait(t *testing.T) {
	dir := t.TempDir()
	pipe, link, target := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(target, link), os.WriteFile(target, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(pipe, os.O_RDONLY|safefile.Flags, 0); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	if f, err := os.OpenFile(link, os.O_RDONLY|safefile.Flags, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("the link was followed: %v, %v", f, err)
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	f, err := safefile.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	f.Close()
	if err := os.Symlink(filepath.Join(dir, "none"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if _, err := safefile.Create(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestMkdir(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b")
	made, err := safefile.Mkdir(path)
	if got := strings.Join(made, " "); err != nil || got != filepath.Dir(path)+" "+path {
		t.Errorf("made %s, %v", got, err)
	}
	if made, err := safefile.Mkdir(path); err != nil || made != nil {
		t.Errorf("again: made %s, %v", made, err)
	}
	file := filepath.Join(path, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "c")} {
		if made, err := safefile.Mkdir(path); !errors.Is(err, syscall.ENOTDIR) || made != nil {
			t.Errorf("%s: made %s, %v", path, made, err)
		}
	}
}
