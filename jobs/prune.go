package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
)

// prune deletes the files below a directory that are older than a retention.
//
//	PRUNE_DIR      the directory; unset: the run is skipped
//	PRUNE_KEEP     how long a file stays after its last change: 720h (default), 30d
//	PRUNE_DRY_RUN  false deletes; true (default) only counts
//
// Directories stay, and so does all that is not a regular file: a symbolic
// link is neither followed nor deleted. File systems mounted below the
// directory belong to it. A directory that holds Soloist's own records, or is
// below them, is refused.
func prune() soloist.Job {
	return soloist.Job{
		Name:     "prune",
		Schedule: "15 3 * * *",
		Timeout:  5 * time.Minute, // which fits into an invocation on each plan of Functions
		Do: func(ctx context.Context, run *soloist.Run) error {
			return runPrune(ctx, os.Getenv, time.Now(), run.Log)
		},
	}
}

func runPrune(ctx context.Context, env func(string) string, now time.Time, log *slog.Logger) error {
	dir := env("PRUNE_DIR")
	if dir == "" {
		return soloist.Skip("PRUNE_DIR is not set")
	}
	keep, keepErr := pruneKeep(env("PRUNE_KEEP"))
	dry, dryErr := pruneDryRun(env("PRUNE_DRY_RUN"))
	if err := errors.Join(keepErr, dryErr); err != nil {
		return err
	}
	root, err := openPruneDir(dir, env)
	if err != nil {
		return err
	}
	defer root.Close()

	p := pruner{tree: root, before: now.Add(-keep), dry: dry}
	err = p.walk(ctx)
	log.Info("pruned", "dir", dir, "keep", keep.String(), "dry_run", dry,
		"seen", p.seen, "kept", p.kept, "old", p.old,
		"deleted", p.deleted, "bytes", p.bytes, "failed", p.failed)
	return err
}

// pruneKeep reads a retention. A day is 24 hours: time.ParseDuration has no
// unit above the hour, and people think of retention in days.
func pruneKeep(text string) (time.Duration, error) {
	if text == "" {
		return 30 * 24 * time.Hour, nil
	}
	hours := text
	if number, rest, ok := strings.Cut(text, "d"); ok {
		if days, err := strconv.ParseUint(number, 10, 16); err == nil {
			hours = fmt.Sprint(24*days, "h", rest)
		}
	}
	keep, err := time.ParseDuration(hours)
	if err != nil || keep <= 0 {
		return 0, fmt.Errorf("PRUNE_KEEP is %q: want a duration above 0, such as 720h, 30d or 1d12h", text)
	}
	return keep, nil
}

// pruneDryRun takes no "0", "no" or "False": to have files deleted, spell it
// exactly; a misspelling is an error.
func pruneDryRun(text string) (bool, error) {
	switch text {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return true, fmt.Errorf("PRUNE_DRY_RUN is %q: want true or false", text)
}

// openPruneDir opens dir, unless it is or holds what no retention is meant
// for: the root of a file system, the home directory or Soloist's records.
func openPruneDir(dir string, env func(string) string) (*os.Root, error) {
	real, err := withoutLinks(dir)
	if err != nil {
		return nil, fmt.Errorf("PRUNE_DIR is %q: want a directory: %w", dir, err)
	}
	info, err := os.Stat(real) // before it is opened: a named pipe would block
	if err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("PRUNE_DIR is %q: want a directory", dir), err)
	}
	top, records := filepath.VolumeName(real)+string(filepath.Separator), recordsDir(env)
	for _, path := range []string{top, env("HOME"), env("USERPROFILE"), records} {
		if path != "" && holds(info, path) {
			return nil, fmt.Errorf("PRUNE_DIR is %q, which is or holds %q: want a directory of its own", dir, path)
		}
	}
	if info, err := os.Stat(records); err == nil && holds(info, real) {
		return nil, fmt.Errorf("PRUNE_DIR is %q, which is within Soloist's records, %q: want a directory of its own", dir, records)
	}
	return os.OpenRoot(real)
}

// recordsDir is the directory of Soloist's own records, if there is one. A job
// whose record is deleted forgets its ticks and its checkpoint.
func recordsDir(env func(string) string) string {
	path, given := strings.CutPrefix(env("SOLOIST_STORAGE"), "dir:")
	if !given {
		path = ".soloist"
	}
	real, err := withoutLinks(path)
	if err != nil {
		return ""
	}
	return real
}

// withoutLinks is the path from the root of the file system.
func withoutLinks(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || filepath.IsAbs(real) {
		return real, err
	}
	wd, err := os.Getwd()
	if err == nil {
		wd, err = filepath.EvalSymlinks(wd)
	}
	return filepath.Join(wd, real), err
}

// holds reports whether dir is path or a directory above it. It compares files
// rather than names, so that no link and no other spelling is a way round.
func holds(dir fs.FileInfo, path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(dir, info) {
			return true
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// A tree is what a pruner needs of an [os.Root], which never leads outside its
// directory, even where a link is put in place of a directory meanwhile.
type tree interface {
	FS() fs.FS
	Lstat(name string) (fs.FileInfo, error)
	Remove(name string) error
}

// A pruner deletes old files and counts. A file is seen and then either kept
// or old. An old one is deleted, failed, or was gone before its turn came; in
// a dry run it is none of these.
type pruner struct {
	tree   tree
	before time.Time // files last changed before this are old
	dry    bool

	seen, kept, old, deleted, failed int

	bytes int64 // the size of the deleted files; in a dry run, of the old ones
	errs  []error
}

// walk visits each file below the tree. A file that cannot be deleted does not
// stop the others.
func (p *pruner) walk(ctx context.Context) error {
	err := fs.WalkDir(p.tree.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // a directory that cannot be listed
			p.fail(err)
		case !entry.IsDir():
			p.fail(p.file(path))
		}
		return nil
	})
	if more := p.failed - len(p.errs); more > 0 {
		p.errs = append(p.errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(append([]error{err}, p.errs...)...)
}

// file deletes the file at path if it is a regular one and old. It stats it
// again, since the directory may have been listed minutes ago.
func (p *pruner) file(path string) error {
	info, err := p.tree.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	p.seen++
	if !info.ModTime().Before(p.before) {
		p.kept++
		return nil
	}
	p.old++
	if !p.dry {
		if err := p.tree.Remove(path); err != nil {
			return err
		}
		p.deleted++
	}
	p.bytes += info.Size()
	return nil
}

// fail counts err and keeps the first ten: a directory of a million files must
// not make an error of a million lines. What has vanished needs no deleting.
func (p *pruner) fail(err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	p.failed++
	if len(p.errs) < 10 {
		p.errs = append(p.errs, err)
	}
}
