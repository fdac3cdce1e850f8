package functions

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

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
var temporaryEnd = regexp.MustCompile(`^\.[A-Z2-7]{8}\.new$`)

// isLeft reports whether a call used the name for p while it wrote
// it. A call that is killed leaves such a file.
func isLeft(name, p string) bool {
	end, ok := strings.CutPrefix(name, p)
	return ok && temporaryEnd.MatchString(end)
}

// sweep removes what killed calls have left of the manifest and of its files.
func (m *manifest) sweep(root *os.Root) error {
	for _, p := range append(slices.Sorted(maps.Keys(m.Files)), manifestFile) {
		if err := sweep(root, p); err != nil {
			return err
		}
	}
	return nil
}

func sweep(root *os.Root, p string) error {
	all, err := fs.ReadDir(root.FS(), path.Dir(p))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		if e.Type().IsRegular() && isLeft(e.Name(), path.Base(p)) {
			err = errors.Join(err, root.Remove(path.Join(path.Dir(p), e.Name())))
		}
	}
	return err
}
