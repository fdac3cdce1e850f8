package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// The instant at which each test prunes. Files are made relative to it.
var pruneNow = time.Date(2026, 11, 21, 3, 15, 0, 0, time.UTC)

const pruneDay = 24 * time.Hour

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

func TestPrune(t *testing.T) {
	tests := []struct {
		name, keep, dry string
		left            []string
		log             string
	}{
		{"deletes what is older", "30d", "false", []string{"a", "a/b", "a/b/edge", "a/young", "future"},
			"keep=720h0m0s dry_run=false seen=5 kept=3 old=2 deleted=2 bytes=20 failed=0"},
		{"is dry unless told", "", "", []string{"a", "a/b", "a/b/edge", "a/b/old", "a/young", "future", "older"},
			"keep=720h0m0s dry_run=true seen=5 kept=3 old=2 deleted=0 bytes=20 failed=0"},
		{"is dry when told", "30d", "true", []string{"a", "a/b", "a/b/edge", "a/b/old", "a/young", "future", "older"},
			"keep=720h0m0s dry_run=true seen=5 kept=3 old=2 deleted=0 bytes=20 failed=0"},
		{"goes by the retention", "1h", "false", []string{"a", "a/b", "future"},
			"keep=1h0m0s dry_run=false seen=5 kept=1 old=4 deleted=4 bytes=40 failed=0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			makeFile(t, 30*pruneDay, dir, "a", "b", "edge") // as old as the retention, not older
			makeFile(t, 30*pruneDay+time.Second, dir, "a", "b", "old")
			makeFile(t, pruneDay, dir, "a", "young")
			makeFile(t, -pruneDay, dir, "future")
			makeFile(t, 999*pruneDay, dir, "older")

			var out bytes.Buffer
			env := environment("PRUNE_DIR", dir, "PRUNE_KEEP", test.keep, "PRUNE_DRY_RUN", test.dry)
			err := runPrune(t.Context(), env, pruneNow, slog.New(slog.NewTextHandler(&out, nil)))
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, dir, test.left...)
			if got := out.String(); !strings.Contains(got, test.log) || strings.Count(got, "\n") != 1 {
				t.Errorf("got log %q, want one line with %q", got, test.log)
			}
		})
	}
}

func TestPruneSkips(t *testing.T) {
	err := runPrune(t.Context(), environment("PRUNE_KEEP", "nonsense"), pruneNow, slog.New(slog.DiscardHandler))
	if want := soloist.Skip("PRUNE_DIR is not set"); err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestPruneKeep(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration // zero: an error
	}{
		{"", 720 * time.Hour},
		{"30d", 720 * time.Hour},
		{"1d", 24 * time.Hour},
		{"36h30m", 36*time.Hour + 30*time.Minute},
		{"65535d", 65535 * 24 * time.Hour},
		{"65536d", 0}, {"0", 0}, {"0s", 0}, {"0d", 0}, {"-1h", 0}, {"-1d", 0}, {"+1d", 0},
		{"30", 0}, {"d", 0}, {"1.5d", 0}, {"1d12h", 0}, {" 30d", 0}, {"30D", 0}, {"a month", 0},
	}
	for _, test := range tests {
		got, err := pruneKeep(test.text)
		if got != test.want || (err != nil) != (test.want == 0) {
			t.Errorf("%q: got %v, %v, want %v", test.text, got, err, test.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), fmt.Sprintf("PRUNE_KEEP is %q: want ", test.text)) {
			t.Errorf("%q: got error %q", test.text, err)
		}
	}
}

func TestPruneDryRun(t *testing.T) {
	for text, want := range map[string]bool{"": true, "true": true, "false": false} {
		if got, err := pruneDryRun(text); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"False", "FALSE", "0", "no", "f", "false ", "1"} {
		got, err := pruneDryRun(text)
		if want := fmt.Sprintf("PRUNE_DRY_RUN is %q: want true or false", text); !got || err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v, want true, %s", text, got, err, want)
		}
	}
}

// TestPruneRefuses deletes nothing even if a refusal fails: it only opens.
func TestPruneRefuses(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "users", "ada")
	makeFile(t, 0, home, "file")
	makeFile(t, 0, base, "data", "file")
	makeFile(t, 0, base, "data", "ada", "file")
	t.Chdir(filepath.Join(base, "data"))
	makeLink(t, home, filepath.Join(base, "to-home"))
	makeLink(t, base, filepath.Join(base, "to-base"))
	top := filepath.VolumeName(base) + string(filepath.Separator)

	tests := []struct {
		name, dir, home, want string // an empty want: no refusal
	}{
		{"the root", top, "", "is or holds"},
		{"the root, spelt otherwise", top + "." + string(filepath.Separator) + "..", "", "is or holds"},
		{"the home", home, home, "is or holds"},
		{"above the home", filepath.Dir(home), home, "is or holds"},
		{"a link to the home", filepath.Join(base, "to-home"), home, "is or holds"},
		{"the home through a link", home, filepath.Join(base, "to-home"), "is or holds"},
		{"above a home through a link", filepath.Join(base, "users"), filepath.Join(base, "to-home"), "is or holds"},
		{"a file", filepath.Join(home, "file"), "", "want a directory"},
		{"nothing", filepath.Join(base, "missing"), "", "want a directory"},
		{"below the home", filepath.Join(base, "data"), base, ""},
		{"beside the home", filepath.Join(base, "data"), home, ""},
		{"through a link", filepath.Join(base, "to-base", "data"), home, ""},
		{"named like the home", filepath.Join(base, "data", "ada"), home, ""},
		{"the working directory", ".", "", ""},
		{"without a home", filepath.Join(base, "data"), "", ""},
		{"with a home that does not exist", filepath.Join(base, "data"), filepath.Join(base, "users", "bob"), ""},
	}
	for _, test := range tests {
		for _, name := range []string{"HOME", "USERPROFILE"} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				root, err := openPruneDir(test.dir, environment(name, test.home))
				if root != nil {
					defer root.Close()
				}
				if test.want == "" {
					if err != nil {
						t.Errorf("got %v, want no error", err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), test.want) ||
					!strings.HasPrefix(err.Error(), fmt.Sprintf("PRUNE_DIR is %q", test.dir)) {
					t.Errorf("got %v, want an error with the value and %q", err, test.want)
				}
			})
		}
	}
}

func TestPruneFollowsNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	makeFile(t, 99*pruneDay, outside, "old")
	makeFile(t, 99*pruneDay, outside, "sub", "old")
	makeFile(t, 99*pruneDay, dir, "in", "old")
	makeLink(t, filepath.Join(outside, "old"), filepath.Join(dir, "to-file"))
	makeLink(t, outside, filepath.Join(dir, "to-dir"))
	makeLink(t, "in", filepath.Join(dir, "to-in"))
	makeLink(t, "nowhere", filepath.Join(dir, "to-nothing"))
	makeLink(t, ".", filepath.Join(dir, "to-self"))

	// A retention that ends in the future: each link, made today, is old too.
	p := pruner{tree: openRoot(t, dir), before: time.Now().Add(pruneDay)}
	if err := p.walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, dir, "in", "to-dir", "to-file", "to-in", "to-nothing", "to-self")
	wantPaths(t, outside, "old", "sub", "sub/old")
	wantCounts(t, p, "seen=1 kept=0 old=1 deleted=1 bytes=10 failed=0")
}

// A directory becomes a link to the outside after it has been listed, at each
// of the moments at which it is gone into again.
func TestPruneLinkSwappedIn(t *testing.T) {
	for _, moment := range []string{"before the list", "before the look", "before the deletion"} {
		t.Run(moment, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			makeFile(t, 99*pruneDay, dir, "a-first")
			makeFile(t, 99*pruneDay, dir, "sub", "old")
			makeFile(t, 99*pruneDay, outside, "old")
			makeFile(t, 99*pruneDay, outside, "other")
			sub := filepath.Join(dir, "sub")

			at := func(when, path string) func(string) error {
				return func(name string) error {
					if moment == when && name == path {
						if err := os.Rename(sub, filepath.Join(dir, "moved")); err != nil {
							t.Fatal(err)
						}
						makeLink(t, outside, sub)
					}
					return nil
				}
			}
			tree := hooked{Root: openRoot(t, dir), remove: at("before the deletion", "sub/old")}
			tree.lstat = at("before the look", "sub/old")
			if moment == "before the list" {
				tree.lstat = at(moment, "a-first")
			}

			p := newPruner(tree)
			err := p.walk(t.Context())
			if err == nil || p.failed != 1 || p.deleted != 1 {
				t.Errorf("got %v, %d failed, %d deleted, want an error, 1, 1", err, p.failed, p.deleted)
			}
			wantPaths(t, outside, "old", "other")
			wantPaths(t, dir, "moved", "moved/old", "sub")
		})
	}
}

func TestPruneFileBecomesLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	makeFile(t, 99*pruneDay, dir, "old")
	makeFile(t, 99*pruneDay, outside, "old")
	swap := func(string) error {
		if err := os.Remove(filepath.Join(dir, "old")); err != nil {
			t.Fatal(err)
		}
		makeLink(t, filepath.Join(outside, "old"), filepath.Join(dir, "old"))
		return nil
	}
	p := newPruner(hooked{Root: openRoot(t, dir), lstat: swap})
	if err := p.walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, dir, "old")
	wantPaths(t, outside, "old")
	wantCounts(t, p, "seen=0 kept=0 old=0 deleted=0 bytes=0 failed=0")
}

func TestPruneVanishingFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d/e"} {
		makeFile(t, 99*pruneDay, dir, name)
	}
	// Somebody else deletes a before the look, b before the deletion, and the
	// directory d between its listing and its turn.
	vanish := func(which ...string) func(string) error {
		return func(name string) error {
			if slices.Contains(which, name) {
				os.RemoveAll(filepath.Join(dir, name))
			}
			if name == "a" {
				os.RemoveAll(filepath.Join(dir, "d"))
			}
			return nil
		}
	}
	p := newPruner(hooked{openRoot(t, dir), vanish("a"), vanish("b")})
	if err := p.walk(t.Context()); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	wantPaths(t, dir)
	wantCounts(t, p, "seen=2 kept=0 old=2 deleted=1 bytes=10 failed=0")
}

func TestPruneGoesOnAfterFailures(t *testing.T) {
	tests := []struct{ files, lines int }{{1, 1}, {10, 10}, {11, 11}, {25, 11}}
	for _, test := range tests {
		dir := t.TempDir()
		for i := range test.files {
			makeFile(t, 99*pruneDay, dir, fmt.Sprintf("bad-%02d", i))
		}
		makeFile(t, 99*pruneDay, dir, "a-good")
		makeFile(t, 99*pruneDay, dir, "z-good")
		refuse := func(name string) error {
			if strings.HasPrefix(name, "bad") {
				return &fs.PathError{Op: "removeat", Path: name, Err: fs.ErrPermission}
			}
			return nil
		}
		p := newPruner(hooked{Root: openRoot(t, dir), remove: refuse})
		err := p.walk(t.Context())
		if !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("got %v, want %v", err, fs.ErrPermission)
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != test.lines {
			t.Errorf("got %d lines, want %d: %q", len(lines), test.lines, lines)
		}
		if more := fmt.Sprintf("and %d more", test.files-10); test.files > 10 && lines[10] != more {
			t.Errorf("got %q, want %q", lines[10], more)
		}
		wantCounts(t, p, fmt.Sprintf("seen=%d kept=0 old=%[1]d deleted=2 bytes=20 failed=%d", test.files+2, test.files))
	}
}

// A directory that cannot be listed is a failure; the others are pruned.
func TestPruneClosedDirectory(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("no permission keeps this user out")
	}
	dir := t.TempDir()
	makeFile(t, 99*pruneDay, dir, "closed", "old")
	makeFile(t, 99*pruneDay, dir, "open", "old")
	closed := filepath.Join(dir, "closed")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(closed, 0o700) })
	p := newPruner(openRoot(t, dir))
	if err := p.walk(t.Context()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want %v", err, fs.ErrPermission)
	}
	wantCounts(t, p, "seen=1 kept=0 old=1 deleted=1 bytes=10 failed=1")
}

func TestPruneStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		makeFile(t, 99*pruneDay, dir, name)
	}
	cause := errors.New("the lease was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := func(name string) error {
		if name == "b" {
			cancel(cause)
		}
		return nil
	}
	p := newPruner(hooked{Root: openRoot(t, dir), remove: stop})
	if err := p.walk(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	wantPaths(t, dir, "c") // the file in hand is finished, the next not begun
	wantCounts(t, p, "seen=2 kept=0 old=2 deleted=2 bytes=20 failed=0")
}
