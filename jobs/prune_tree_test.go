package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// environment returns a look-up in pairs of a name and a value.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for pair := range slices.Chunk(pairs, 2) {
			if pair[0] == name {
				return pair[1]
			}
		}
		return ""
	}
}

// makeFile makes a file of ten bytes, and its directories, aged as told.
func makeFile(t *testing.T, age time.Duration, elements ...string) {
	t.Helper()
	path := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	when := pruneNow.Add(-age)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

func makeLink(t *testing.T, target, path string) {
	t.Helper()
	err := os.Symlink(target, path)
	if err != nil && runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// paths lists all that is below dir, links as they are.
func paths(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			name, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func wantPaths(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := paths(t, dir); !slices.Equal(got, want) {
		t.Errorf("got files %q, want %q", got, want)
	}
}

// wantPruned has all files visited, without an error.
func wantPruned(t *testing.T, p pruner, want string) {
	t.Helper()
	if err := p.walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, p, want)
}

func wantCounts(t *testing.T, p pruner, want string) {
	t.Helper()
	got := fmt.Sprintf("seen=%d kept=%d old=%d deleted=%d bytes=%d failed=%d",
		p.seen, p.kept, p.old, p.deleted, p.bytes, p.failed)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// hooked is a real directory in which a test does things at a given moment.
type hooked struct {
	*os.Root
	lstat, remove func(name string) error
}

func (h hooked) Lstat(name string) (fs.FileInfo, error) {
	if h.lstat != nil {
		if err := h.lstat(name); err != nil {
			return nil, err
		}
	}
	return h.Root.Lstat(name)
}

func (h hooked) Remove(name string) error {
	if h.remove != nil {
		if err := h.remove(name); err != nil {
			return err
		}
	}
	return h.Root.Remove(name)
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func newPruner(tree tree) pruner {
	return pruner{tree: tree, before: pruneNow.Add(-30 * pruneDay)}
}
