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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// The instant at which each test prunes. Files are made relative to it.
var pruneNow = time.Date(2026, 11, 21, 3, 15, 0, 0, time.UTC)

const pruneDay = 24 * time.Hour

func TestPrune(t *testing.T) {
	const some, all = "a a/b a/b/edge a/young future", "a a/b a/b/edge a/b/old a/young future older"
	for name, test := range map[string]struct{ keep, dry, left, log string }{
		"deletes what is older": {"30d", "false", some, "keep=720h0m0s dry_run=false seen=5 kept=3 old=2 deleted=2 bytes=20 failed=0"},
		"is dry unless told":    {"", "", all, "keep=720h0m0s dry_run=true seen=5 kept=3 old=2 deleted=0 bytes=20 failed=0"},
		"is dry when told":      {"30d", "true", all, "keep=720h0m0s dry_run=true seen=5 kept=3 old=2 deleted=0 bytes=20 failed=0"},
		"goes by the retention": {"1h", "false", "a a/b future", "keep=1h0m0s dry_run=false seen=5 kept=1 old=4 deleted=4 bytes=40 failed=0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			makeFile(t, 30*pruneDay, dir, "a", "b", "edge") // as old as the retention, not older
			makeFile(t, 30*pruneDay+time.Second, dir, "a", "b", "old")
			makeFile(t, pruneDay, dir, "a", "young")
			makeFile(t, -pruneDay, dir, "future")
			makeFile(t, 999*pruneDay, dir, "older")

			var out bytes.Buffer
			env := environment("PRUNE_DIR", dir, "PRUNE_KEEP", test.keep, "PRUNE_DRY_RUN", test.dry)
			must(t, runPrune(t.Context(), env, pruneNow, slog.New(slog.NewTextHandler(&out, nil))))
			wantPaths(t, dir, strings.Fields(test.left)...)
			if got := out.String(); !strings.Contains(got, test.log) || strings.Count(got, "\n") != 1 {
				t.Errorf("got log %q, want one line with %q", got, test.log)
			}
		})
	}
}

func TestPruneDryRun(t *testing.T) {
	for text, want := range map[string]string{"": "true <nil>", "true": "true <nil>", "false": "false <nil>"} {
		if got, err := pruneDryRun(text); fmt.Sprint(got, err) != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"False", "0", "no", "false "} {
		if got, err := pruneDryRun(text); !got || err == nil {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

// TestPruneRefuses deletes nothing even if a refusal fails: it only opens.
func TestPruneRefuses(t *testing.T) {
	base := t.TempDir()
	in := func(path string) string { return filepath.Join(base, filepath.FromSlash(path)) }
	for _, path := range []string{"users/ada/file", "data/ada/file", ".soloist/jobs/ingest.json", "elsewhere/jobs/old/ingest.json"} {
		makeFile(t, 0, in(path))
	}
	for target, link := range map[string]string{"users/ada": "to-home", "": "to-base", ".soloist/jobs": "to-jobs", "elsewhere/jobs/old": "to-old"} {
		makeLink(t, in(target), in(link))
	}
	home, elsewhere, top := in("users/ada"), in("elsewhere"), filepath.VolumeName(base)+string(filepath.Separator)
	const (
		holds  = "is or holds .*: want a directory of its own"
		within = "is within Soloist's records.*: want a directory of its own"
		none   = "want a directory"
	)
	for _, test := range []struct{ wd, dir, home, storage, want string }{
		// The root, the home, and what is above it.
		{"data", top, "", "", holds},
		{"data", home, home, "", holds},
		{"data", in("users"), home, "", holds},
		{"data", in("to-home"), home, "", holds},
		{"data", in("users"), in("to-home"), "", holds},
		{"data", in("users/ada/file"), "", "", none},
		{"data", in("missing"), "", "", none},
		{"data", in("data"), base, "", ""},
		{"data", in("to-base/data"), home, "", ""},
		{"data", in("data/ada"), home, "", ""}, // named like the home
		{"data", ".", "", "", ""},
		{"data", in("data"), in("users/bob"), "", ""}, // who has no home
		// The records of the scheduler are no old files to delete, wherever they are.
		{"", base, "", "", holds},
		{"", ".soloist", "", "", holds},
		{"", elsewhere, "", "dir:elsewhere", holds},
		{"", filepath.Join(".soloist", "jobs"), "", "", within},
		{"", "to-jobs", "", "", within},
		{"", filepath.Join("elsewhere", "jobs"), "", "dir:elsewhere", within},
		{"", filepath.Join("elsewhere", "jobs"), "", "dir:missing", ""},
		// Within the records, a relative path says nothing of them.
		{"elsewhere/jobs/old", ".", "", "dir:" + elsewhere, within},
		{"to-old", "..", "", "dir:" + elsewhere, within},
	} {
		t.Chdir(in(test.wd))
		for _, name := range []string{"HOME", "USERPROFILE"} {
			root, err := openPruneDir(test.dir, environment(name, test.home, "SOLOIST_STORAGE", test.storage))
			if root != nil {
				root.Close()
			}
			says := regexp.MustCompile("^" + regexp.QuoteMeta(fmt.Sprintf("PRUNE_DIR is %q", test.dir)) + ".*" + test.want)
			if (err == nil) != (test.want == "") || err != nil && !says.MatchString(err.Error()) {
				t.Errorf("%q: got %v, want an error with the value and %q", test, err, test.want)
			}
		}
	}
}

// A file that cannot be deleted stops no other. The error has the first ten, and how many there are.
func TestPruneGoesOnAfterFailures(t *testing.T) {
	for files, lines := range map[int]int{1: 1, 10: 10, 11: 11, 25: 11} {
		dir := t.TempDir()
		for i := range files {
			makeFile(t, 99*pruneDay, dir, fmt.Sprintf("bad-%02d", i))
		}
		makeFile(t, 99*pruneDay, dir, "a-good")
		makeFile(t, 99*pruneDay, dir, "z-good")
		p := newPruner(t, dir, func(moment string) error {
			if strings.HasPrefix(moment, "remove bad") {
				return &fs.PathError{Op: "removeat", Path: moment, Err: fs.ErrPermission}
			}
			return nil
		})
		err := p.walk(t.Context())
		got := strings.Split(fmt.Sprint(err), "\n")
		if !errors.Is(err, fs.ErrPermission) || len(got) != lines || files > 10 && got[10] != fmt.Sprintf("and %d more", files-10) {
			t.Errorf("of %d failures: got %q", files, got)
		}
		wantCounts(t, p, fmt.Sprintf("seen=%d kept=0 old=%[1]d deleted=2 bytes=20 failed=%d", files+2, files))
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
	must(t, os.Chmod(closed, 0))
	t.Cleanup(func() { os.Chmod(closed, 0o700) })
	p := newPruner(t, dir, nothing)
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
	p := newPruner(t, dir, func(moment string) error {
		if moment == "remove b" {
			cancel(cause)
		}
		return nil
	})
	if err := p.walk(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	wantPaths(t, dir, "c") // the file in hand is finished, the next not begun
	wantCounts(t, p, "seen=2 kept=0 old=2 deleted=2 bytes=20 failed=0")
}

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
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	when := pruneNow.Add(-age)
	must(t, os.Chtimes(path, when, when))
}

func makeLink(t *testing.T, target, path string) {
	t.Helper()
	err := os.Symlink(target, path)
	if err != nil && runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege here: ", err)
	}
	must(t, err)
}

// wantPaths wants this below dir, links as they are.
func wantPaths(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			name, _ := filepath.Rel(dir, path)
			got = append(got, filepath.ToSlash(name))
		}
		return err
	}))
	if !slices.Equal(got, want) {
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

// hooked is a real directory in which a test does something before a file is looked at or removed.
type hooked struct {
	*os.Root
	before func(moment string) error
}

func (h hooked) Lstat(name string) (fs.FileInfo, error) {
	if err := h.before("lstat " + name); err != nil {
		return nil, err
	}
	return h.Root.Lstat(name)
}

func (h hooked) Remove(name string) error {
	if err := h.before("remove " + name); err != nil {
		return err
	}
	return h.Root.Remove(name)
}

func nothing(string) error { return nil }

func newPruner(t *testing.T, dir string, before func(moment string) error) pruner {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return pruner{tree: hooked{root, before}, before: pruneNow.Add(-30 * pruneDay)}
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
	p := newPruner(t, dir, nothing)
	p.before = time.Now().Add(pruneDay)
	must(t, p.walk(t.Context()))
	wantCounts(t, p, "seen=1 kept=0 old=1 deleted=1 bytes=10 failed=0")
	wantPaths(t, dir, "in", "to-dir", "to-file", "to-in", "to-nothing", "to-self")
	wantPaths(t, outside, "old", "sub", "sub/old")
}

// A directory, or a file, becomes a link to the outside after it has been listed, at each of the moments at which it is gone
// into again.
func TestPruneLinkSwappedIn(t *testing.T) {
	for moment, place := range map[string]string{"lstat a-first": "sub", "lstat sub/old": "sub", "remove sub/old": "sub", "lstat file": "file"} {
		t.Run(moment, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			for _, name := range []string{"a-first", "file", "sub/old"} {
				makeFile(t, 99*pruneDay, dir, name)
			}
			makeFile(t, 99*pruneDay, outside, "old")
			makeFile(t, 99*pruneDay, outside, "other")
			p := newPruner(t, dir, func(now string) error {
				if now == moment {
					must(t, os.Rename(filepath.Join(dir, place), filepath.Join(dir, "moved")))
					makeLink(t, map[string]string{"sub": outside, "file": filepath.Join(outside, "old")}[place], filepath.Join(dir, place))
				}
				return nil
			})
			err := p.walk(t.Context())
			wantPaths(t, outside, "old", "other")
			if place == "file" { // the link is no file
				wantPaths(t, dir, "file", "moved", "sub")
			} else {
				wantPaths(t, dir, "moved", "moved/old", "sub")
			}
			if failed := map[string]int{"sub": 1}[place]; (err != nil) != (failed > 0) || p.failed != failed || p.deleted != 2 {
				t.Errorf("got %v, %d failed, %d deleted, want %d failed, 2 deleted", err, p.failed, p.deleted, failed)
			}
		})
	}
}

func TestPruneVanishingFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d/e"} {
		makeFile(t, 99*pruneDay, dir, name)
	}
	// Somebody else deletes a before the look, b before the deletion, and the
	// directory d between its listing and its turn.
	p := newPruner(t, dir, func(moment string) error {
		switch moment {
		case "lstat a":
			os.Remove(filepath.Join(dir, "a"))
			os.RemoveAll(filepath.Join(dir, "d"))
		case "remove b":
			os.Remove(filepath.Join(dir, "b"))
		}
		return nil
	})
	must(t, p.walk(t.Context()))
	wantCounts(t, p, "seen=2 kept=0 old=2 deleted=1 bytes=10 failed=0")
	wantPaths(t, dir)
}
