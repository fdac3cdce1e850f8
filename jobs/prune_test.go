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
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// The instant at which each test prunes. Files are made relative to it.
var pruneNow = time.Date(2026, 11, 21, 3, 15, 0, 0, time.UTC)

const pruneDay = 24 * time.Hour

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
	checkDurations(t, "PRUNE_KEEP", pruneKeep, []durationTest{
		{"", 720 * time.Hour},
		{"30d", 720 * time.Hour},
		{"1d", 24 * time.Hour},
		{"36h30m", 36*time.Hour + 30*time.Minute},
		{"65535d", 65535 * 24 * time.Hour},
		{"65536d", 0}, {"0", 0}, {"0s", 0}, {"0d", 0}, {"-1h", 0}, {"-1d", 0}, {"+1d", 0},
		{"30", 0}, {"d", 0}, {"1.5d", 0}, {"1d12h", 0}, {" 30d", 0}, {"30D", 0}, {"a month", 0},
	})
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
				checkPruneDir(t, test.dir, environment(name, test.home), test.want)
			})
		}
	}
}

// checkPruneDir opens a directory, and looks for what the refusal has to say; empty: there is none.
func checkPruneDir(t *testing.T, dir string, env func(string) string, want string) {
	t.Helper()
	root, err := openPruneDir(dir, env)
	if root != nil {
		defer root.Close()
	}
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want no error", err)
	case want != "" && (err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("PRUNE_DIR is %q", dir)) || !regexp.MustCompile(want).MatchString(err.Error())):
		t.Errorf("got %v, want an error with the value and %q", err, want)
	}
}

// The records of the scheduler are no old files to delete, wherever they are.
func TestPruneRefusesTheRecords(t *testing.T) {
	base := t.TempDir()
	makeFile(t, 0, base, ".soloist", "jobs", "ingest.json")
	makeFile(t, 0, base, "elsewhere", "jobs", "old", "ingest.json")
	makeLink(t, filepath.Join(base, ".soloist", "jobs"), filepath.Join(base, "to-jobs"))
	makeLink(t, filepath.Join(base, "elsewhere", "jobs", "old"), filepath.Join(base, "to-old"))
	elsewhere, jobs := filepath.Join(base, "elsewhere"), filepath.Join("elsewhere", "jobs")
	const holds, within = "is or holds .*: want a directory of its own", "is within Soloist's records.*: want a directory of its own"
	for _, test := range []struct{ wd, dir, storage, want string }{
		{"", base, "", holds},
		{"", filepath.Join(base, ".soloist"), "", holds},
		{"", base, "dir:elsewhere", holds},
		{"", elsewhere, "dir:elsewhere", holds},
		{"", ".soloist", "", holds},
		{"", filepath.Join(".soloist", "jobs"), "", within},
		{"", "to-jobs", "", within},
		{"", filepath.Join(base, ".soloist", "jobs"), "dir:.soloist", within},
		{"", jobs, "dir:elsewhere", within},
		{"", jobs, "dir:missing", ""},
		{"", jobs, "", ""},
		// Within the records, a relative path says nothing of them.
		{filepath.Join(jobs, "old"), ".", "dir:" + elsewhere, within},
		{filepath.Join(jobs, "old"), "..", "dir:" + elsewhere, within},
		{"to-old", ".", "dir:" + elsewhere, within},
		{"to-old", "..", "dir:" + elsewhere, within},
	} {
		t.Run(strings.ReplaceAll(test.wd+", "+test.dir+", "+test.storage, base, "base"), func(t *testing.T) {
			t.Chdir(filepath.Join(base, test.wd))
			checkPruneDir(t, test.dir, environment("SOLOIST_STORAGE", test.storage), test.want)
		})
	}
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
