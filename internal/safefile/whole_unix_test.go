//go:build !windows

package safefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/internal/safefile"
)

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

// feed has something that reads from a pipe find its end at once, so that a test fails and does not hang.
func feed(t *testing.T, pipe string) (release func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
			f.Close()
		}
	}()
	return func() {
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
