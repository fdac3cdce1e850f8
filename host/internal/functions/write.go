package functions

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/safefile"
)

// Write puts the bundle into a directory, which must be new, empty, or written by
// an earlier Write.
func (b *Bundle) Write(dir string) error {
	b.where = dir
	program, err := safefile.Read(b.program)
	if err != nil {
		return fmt.Errorf("the program: %w", err)
	}
	b.files[b.target] = program
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no link in it leads elsewhere
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := b.readManifest(root)
	if err != nil {
		return err
	}
	if err := b.keepEdited(root, old); err != nil {
		return err
	}
	return b.replace(root, old)
}

// readManifest returns the manifest of a directory that this command may write to.
func (b *Bundle) readManifest(root *os.Root) (manifest, error) {
	old := manifest{Files: map[string][]string{}}
	text, err := safefile.ReadIn(root, manifestFile)
	if err == nil {
		if err := json.Unmarshal(text, &old); err != nil || old.Files == nil {
			return old, fmt.Errorf("%s is damaged: write to another directory", manifestFile)
		}
		return old, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return old, err
	}
	there, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return old, err
	}
	var strange []string
	for _, e := range there {
		if of, left := isLeft(e.Name(), e); !left || of != manifestFile { // which is the first file that a call writes
			strange = append(strange, e.Name())
		}
	}
	if len(strange) > 0 {
		return old, fmt.Errorf("%s was not written by this command, and has %s in it: want an empty directory, or a new one", b.where, format.Join(strange[:min(3, len(strange))]...))
	}
	return old, nil
}

// keepEdited leaves out what somebody has made their own. A file that was never
// this command's stands in the way.
func (b *Bundle) keepEdited(root *os.Root, old manifest) error {
	for _, p := range slices.Sorted(maps.Keys(b.files)) {
		text, err := safefile.ReadIn(root, p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case bytes.Equal(text, b.files[p]), slices.Contains(old.Files[p], hash(text)):
			continue
		case old.Files[p] == nil:
			return fmt.Errorf("%s in %s is not this command's: move it away", p, b.where)
		}
		delete(b.files, p)
		if p != "local.settings.json" { // which is there to be edited
			b.kept = append(b.kept, p)
		}
	}
	return nil
}

// replace writes the files and removes the files of deleted jobs. The manifest
// lists both old and new ones until all is done, so that a second call can
// finish what a first has begun.
func (b *Bundle) replace(root *os.Root, old manifest) error {
	now := manifest{By: manifestBy, Files: map[string][]string{}}
	for p, text := range b.files {
		now.Files[p] = []string{hash(text)}
	}
	for _, p := range append(b.kept, "local.settings.json") {
		if now.Files[p] == nil && old.Files[p] != nil {
			now.Files[p] = old.Files[p]
		}
	}
	both := manifest{By: manifestBy, Files: maps.Clone(old.Files)}
	for p, hashes := range now.Files {
		both.Files[p] = append(slices.Clone(old.Files[p]), hashes...)
	}
	both.sweep(root)
	var err error
	write := func(p string, text []byte, mode fs.FileMode) {
		if err == nil {
			err = safefile.WriteIn(root, p, text, mode)
		}
	}
	write(manifestFile, indented(both), 0o644)
	for _, p := range slices.Sorted(maps.Keys(b.files)) {
		mode := fs.FileMode(0o644)
		if p == b.target {
			mode = 0o755
		}
		write(p, b.files[p], mode)
	}
	for _, p := range slices.Sorted(maps.Keys(old.Files)) {
		if now.Files[p] == nil && err == nil {
			err = b.remove(root, p, old.Files[p])
		}
	}
	write(manifestFile, indented(now), 0o644)
	return err
}

// remove takes away a file of an earlier call unless it was edited.
func (b *Bundle) remove(root *os.Root, p string, hashes []string) error {
	text, err := safefile.ReadIn(root, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.Contains(hashes, hash(text)) {
		b.warnings = append(b.warnings, p+" is not wanted any more, but was edited since it was written, and is left alone")
		return nil
	}
	if err := root.Remove(p); err != nil {
		return err
	}
	b.removed = append(b.removed, p)
	if dir := path.Dir(p); dir != "." {
		root.Remove(dir) // unless somebody else has something there
	}
	return nil
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// manifestFile says which files of a directory this command has written, with their
// hashes. A file with another hash was edited, and is never overwritten.
const manifestFile = ".soloist-functions.json"

// A manifest is what it holds. A path has several hashes while it is written.
type manifest struct {
	By    string              `json:"by"`
	Files map[string][]string `json:"files"`
}

const manifestBy = "the command functions of a soloist program: it overwrites and removes these files, unless they have been edited"

// temporaryEnd is what [safefile.Temporary] adds to a name.
var temporaryEnd = regexp.MustCompile(`\.[A-Z2-7]{8}\.new$`)

// isLeft reports whether a file is what a call that was killed has left, and of which file.
func isLeft(p string, d fs.DirEntry) (of string, left bool) {
	of = temporaryEnd.ReplaceAllString(p, "")
	return of, of != p && d.Type().IsRegular()
}

// sweep removes what killed calls have left of the manifest and of its files, as far as that can be found.
func (m *manifest) sweep(root *os.Root) {
	fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		// An error is of a directory that is somebody else's.
		if of, left := isLeft(p, d); err == nil && left && (of == manifestFile || m.Files[of] != nil) {
			root.Remove(p)
		}
		return nil
	})
}
