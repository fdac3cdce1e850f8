//go:build !windows

package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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

// Whatever else lies where a file should be is refused, and nothing waits for it. Read follows links.
func TestWholeFilesAreRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(syscall.Mkfifo(in("pipe"), 0o600), os.WriteFile(in("target"), []byte("x"), 0o600), os.Symlink("target", in("link")),
		os.Symlink("pipe", in("bent")), os.Symlink("/dev/null", in("null"))); err != nil {
		t.Fatal(err)
	}
	release := feed(t, in("pipe"))
	defer release()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const pipe, link, directory, device, none = "is a named pipe", "is a symbolic link", "is a directory", "is a device", "no such file"
	for name, want := range map[string]struct{ read, in string }{
		"pipe": {pipe, pipe}, "bent": {pipe, link}, "link": {"", link}, "null": {device, link}, ".": {directory, directory}, "target": {"", ""}, "none": {none, none}} {
		text, err := safefile.Read(in(name))
		inside, errIn := safefile.ReadIn(root, name)
		f, errOpen := safefile.Open(in(name))
		f.Close()
		for _, got := range []struct {
			text []byte
			err  error
			want string
		}{{text, err, want.read}, {inside, errIn, want.in}, {[]byte("x"), errOpen, want.in}} {
			if (got.err == nil) != (got.want == "") || got.err == nil && string(got.text) != "x" || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: got %q, %v, want %s", name, got.text, got.err, got.want)
			}
		}
	}
}

// feed has all that reads from a pipe find its end at once, so that a test fails and does not hang.
func feed(t *testing.T, pipe string) (release func()) {
	t.Helper()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
				f.Close()
			}
		}
	}()
	return func() {
		stop.Store(true)
		if f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			<-done
			f.Close()
		}
	}
}

// A file is replaced, and not written to: neither a reader of the old one nor what a link leads to sees half of it.
func TestWriteInReplaces(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(in("other"), []byte("old"), 0o600), os.Link(in("other"), in("hard")), os.Symlink("other", in("soft"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"hard", "soft", "below/new"} {
		if err := safefile.WriteIn(root, name, []byte("new"), 0o755); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(in(name))
		if text, _ := os.ReadFile(in(name)); err != nil || string(text) != "new" || info.Mode() != 0o755 {
			t.Errorf("%s: got %q, %v, %v", name, text, info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(in("other")); err != nil || string(text) != "old" {
		t.Errorf("the other file: got %q, %v, want it as it was", text, err)
	}
	if err := os.Mkdir(in("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := safefile.WriteIn(root, "dir", nil, 0o644); err == nil {
		t.Error("a directory was replaced")
	}
	left, err := filepath.Glob(in("*.new"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %q, %v", left, err)
	}
}
