package azd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/internal/safefile"
)

// Write puts files into a directory, which is made if it is not there, and
// returns the paths of those that were not there as they are. A file that
// differs stays, and nothing is written, unless overwrite says otherwise.
func Write(dir string, files map[string][]byte, overwrite bool) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir) // no link in it leads elsewhere
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := safefile.ReadIn(root, name)
		switch {
		case err == nil && bytes.Equal(text, files[name]):
			continue
		case err == nil:
			differ = append(differ, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		written = append(written, name)
	}
	if len(differ) > 0 && !overwrite {
		return nil, fmt.Errorf("%s in %s would be overwritten: move it away, or give --overwrite", strings.Join(differ, ", "), dir)
	}
	for _, name := range written {
		if err := safefile.WriteIn(root, name, files[name], 0o644); err != nil {
			return nil, err
		}
	}
	return written, nil
}
