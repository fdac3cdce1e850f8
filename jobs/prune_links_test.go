package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

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
	wantPruned(t, p, "seen=1 kept=0 old=1 deleted=1 bytes=10 failed=0")
	wantPaths(t, dir, "in", "to-dir", "to-file", "to-in", "to-nothing", "to-self")
	wantPaths(t, outside, "old", "sub", "sub/old")
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
	wantPruned(t, p, "seen=0 kept=0 old=0 deleted=0 bytes=0 failed=0")
	wantPaths(t, dir, "old")
	wantPaths(t, outside, "old")
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
	wantPruned(t, p, "seen=2 kept=0 old=2 deleted=1 bytes=10 failed=0")
	wantPaths(t, dir)
}
