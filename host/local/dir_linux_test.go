package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// asNobody runs f without the rights of root, if the test has them. The thread
// it runs on is not used again.
func asNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			_ = syscall.Setfsuid(nobody())
		}
		f()
	}()
	<-done
}

// A call without the permission that it needs fails before it has changed the entry, and says what to do. One that may write a
// directory and not read it cannot make names outlast a loss of power.
func TestDirNoPermission(t *testing.T) {
	for _, forbidden := range []fs.FileMode{0o000, 0o555, 0o300} {
		d := local.Dir{Path: t.TempDir()}
		_, etag := held(t, d, local.Longest)
		for _, dir := range []string{filepath.Dir(d.Path), d.Path} {
			mode(t, dir, 0o755)
		}
		app := filepath.Join(d.Path, "app")
		if forbidden == 0o300 {
			for _, path := range []string{app, place(d), current(t, d)} {
				if err := os.Chown(path, nobody(), -1); err != nil {
					t.Fatal(err)
				}
			}
			mode(t, place(d), forbidden)
		}
		mode(t, app, forbidden)
		asNobody(func() {
			calls := each(t.Context(), d, etag)
			_, calls["create of another"] = d.Create(t.Context(), "app/other", []byte("x"))
			for call, err := range calls {
				if forbidden == 0o555 && os.Geteuid() != 0 && (call == "read" || call == "create") {
					continue // the owner may read
				}
				if !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%s, mode %v: got %v, want %v", call, forbidden, err, fs.ErrPermission)
				} else if !strings.Contains(err.Error(), app) || !strings.Contains(err.Error(), "give this user the right") {
					t.Errorf("%s, mode %v: got %v, want the path and what to do", call, forbidden, err)
				}
			}
		})
		mode(t, app, 0o700)
		mode(t, place(d), 0o700)
		if got, err := d.Read(t.Context(), "app/job"); err != nil || got.State != store.Leased || got.ETag != etag {
			t.Errorf("afterwards: got %+v, %v, want it as it was", got, err)
		}
		if got := files(t, app); strings.Contains(got+" ", "other.d ") {
			t.Errorf("%q are there", got)
		}
	}
}

func mode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// mount puts a small file system under a store, where the test may.
func mount(t *testing.T, options string) string {
	path := t.TempDir()
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestDirFull(t *testing.T) {
	d := local.Dir{Path: mount(t, "size=16k")}
	e := create(t, d, "app/job")
	filler := filepath.Join(d.Path, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: got %v, want %v", err, syscall.ENOSPC)
	}
	l := d.Lease("app/job", id1)
	_, err := l.Acquire(t.Context(), local.Longest, e.ETag)
	wantRefusal(t, "acquire", err)
	if err != nil && (!strings.Contains(err.Error(), d.Path) || !strings.Contains(err.Error(), "make room")) {
		t.Errorf("acquire: got %v, want the path and what to do", err)
	}
	wantState(t, "while the disk is full", d, store.Available)
	wantFiles(t, d, "1.json")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	acquire(t, l, local.Longest, e.ETag)
}

func TestDirReadOnly(t *testing.T) {
	d := local.Dir{Path: mount(t, "")}
	e := create(t, d, "app/job")
	if err := syscall.Mount("", d.Path, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	wantState(t, "state", d, store.Available) // one may look
	_, err := d.Lease("app/job", id1).Acquire(t.Context(), local.Longest, e.ETag)
	wantRefusal(t, "acquire", err)
	if err != nil && (!strings.Contains(err.Error(), d.Path) || !strings.Contains(err.Error(), "is read-only")) {
		t.Errorf("acquire: got %v, want the path and what to do", err)
	}
}

// Root that may not give files away, as on a network file system that squashes
// it, leaves none behind that the owner of the directory cannot use.
func TestDirCannotStayItsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	d := local.Dir{Path: t.TempDir()}
	app := filepath.Join(d.Path, "app")
	for dir := app; len(dir) >= len(filepath.Dir(d.Path)); dir = filepath.Dir(dir) {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		mode(t, dir, 0o777)
	}
	if err := os.Chown(app, 12345, 12346); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		_, err := d.Create(t.Context(), "app/job", []byte("x"))
		wantRefusal(t, "create", err)
		if err != nil && !strings.Contains(err.Error(), "belongs to user 12345") {
			t.Errorf("got %v, want the owner", err)
		}
	})
	if got := files(t, app); got != "" {
		t.Errorf("files: got %s, want none", got)
	}
}

// nobody is whom asNobody runs as.
func nobody() int {
	if os.Geteuid() == 0 {
		return 65534
	}
	return os.Geteuid()
}
