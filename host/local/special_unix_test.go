//go:build !windows

package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/host/local"
)

// Something that is not a regular file stands where a file of the store belongs:
// the calls that need the file say so, at once (a pipe has no writer to wait for),
// and leave it alone.
func TestDirRefusesSpecialFiles(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	kinds := map[string]func(path string) error{
		"a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a symbolic link": func(path string) error { return os.Symlink(elsewhere, path) },
	}
	for kind, put := range kinds {
		for _, file := range []string{"job.d", "job.d/2.LIFE.json"} {
			if kind == "a directory" && file == "job.d" {
				continue
			}
			t.Run(kind+" as "+file, func(t *testing.T) {
				d := local.Dir{Path: t.TempDir()}
				e := create(t, d, "app/job")
				path := filepath.Join(d.Path, "app", file)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Fatal(err)
				}
				for call, err := range each(t.Context(), d, e.ETag) {
					wantRefusal(t, call, err)
					want := path + " is " + kind + ", not a "
					if err != nil && !(strings.Contains(err.Error(), want) && strings.Contains(err.Error(), ": move it away")) {
						t.Errorf("%s: got %v, want the path, what it is and what to do", call, err)
					}
				}
				if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
					t.Errorf("it is gone: %v", err)
				}
				if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a file was made at the end of the link: %v", err)
				}
			})
		}
	}
}

// A link to a directory serves as one; a link to nothing is refused.
func TestDirLinks(t *testing.T) {
	target, dir := t.TempDir(), t.TempDir()
	for _, link := range []struct{ to, as string }{{target, "good"}, {filepath.Join(target, "missing"), "bad"}} {
		if err := os.Symlink(link.to, filepath.Join(dir, link.as)); err != nil {
			t.Fatal(err)
		}
	}
	create(t, local.Dir{Path: filepath.Join(dir, "good")}, "app/job")
	_, err := local.Dir{Path: filepath.Join(dir, "bad")}.Create(t.Context(), "app/job", []byte("x"))
	wantRefusal(t, "create", err)
	if err != nil && !strings.Contains(err.Error(), filepath.Join(dir, "bad")+" is there and leads to no directory: move it away") {
		t.Errorf("got %v", err)
	}
}

const ( // of a user and a group that need not exist
	someUser  = 12345
	someGroup = 12346
)

// Root works in the directory of another user: all files stay that user's.
func TestDirStaysItsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	store := t.TempDir()
	if err := os.Chown(store, someUser, someGroup); err != nil {
		t.Fatal(err)
	}
	d := local.Dir{Path: filepath.Join(store, "made", "too")}
	l, etag := held(t, d, local.Longest)
	if _, err := save(t, l, etag, "x", "y"); err != nil {
		t.Fatal(err)
	}
	found := 0
	err := filepath.WalkDir(store, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != someUser || st.Gid != someGroup {
			t.Errorf("%s belongs to %d and group %d", path, st.Uid, st.Gid)
		}
		found++
		return nil
	})
	if err != nil || found != 6 { // two above the app, it, the entry's, and the file in that
		t.Errorf("found %d files and directories, want 6: %v", found, err)
	}
}
