package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/soloist-go/soloist/internal/safefile"
	"github.com/soloist-go/soloist/store"
)

// file is the content of a state file. Entry guards against a file that was
// copied to another name, Schema against a program older than the file: it
// would drop what it does not know with its next update.
type file struct {
	Schema int    `json:"schema"`
	Entry  string `json:"entry"`
	entry
}

// A checkpoint must not get lost that way, so an entry that has one is of
// schema 2. Any other stays 1, lest a step back to the version before find
// nothing that it can read; how a lease's end fares there, see instant.
const (
	schemaPlain      = 1
	schemaCheckpoint = 2
)

// maxFile is beyond base64 and escapes of any entry, short of trouble with memory.
const maxFile = 2*store.MaxCheckpoint + 8*store.MaxRecord

func newFile(name string, e entry) file {
	f := file{Schema: schemaPlain, Entry: name, entry: e}
	if e.Checkpoint != "" {
		f.Schema = schemaCheckpoint
	}
	return f
}

// load reads the entry's file. No file: the entry that does not exist.
func load(path, name string) (entry, error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, err
	}
	var f file
	err = json.Unmarshal(text, &f)
	if err == nil && f.Schema > schemaCheckpoint {
		return entry{}, fmt.Errorf("%s has schema %d, of a newer version of this program, and is left as it is: update the program", path, f.Schema)
	}
	if err == nil {
		err = f.check(name)
	}
	if err != nil {
		return entry{}, fmt.Errorf("%s is not the state of this entry, and is left as it is (%w): mend it, or move it away to begin anew", path, err)
	}
	return f.entry, nil
}

func readFile(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// check refuses whatever this program would not have written.
func (f *file) check(name string) error {
	switch {
	case f.Schema < schemaPlain:
		return fmt.Errorf("schema %d is unknown", f.Schema)
	case f.Entry != name:
		return fmt.Errorf("it is the entry %q", f.Entry)
	case f.ETag == "":
		return errors.New("it has no etag")
	case f.Lease.ID == "" && f.Lease != lease{}:
		return errors.New("its lease has no id")
	}
	if f.Lease.ID != "" {
		if err := errors.Join(checkID(f.Lease.ID), checkLength(f.Lease.Length)); err != nil {
			return err
		}
	}
	return errors.Join(checkRecord([]byte(f.Record)), checkCheckpoint(len(f.Checkpoint)))
}

// save replaces the entry's file; the caller has its lock. The new one is
// complete on disk before it takes the name, so there is a whole file under
// that name at any time. What a dead process left of a temporary file goes away
// with the next update, because under the lock there is only one.
func save(path, name string, e entry) error {
	text, err := json.Marshal(newFile(name, e))
	if err != nil {
		return err
	}
	temp := path + ".tmp"
	if err := safefile.Regular(temp); err != nil {
		return err
	}
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := openDir(filepath.Dir(path)) // a missing permission shows while nothing is changed
	if err != nil {
		return err
	}
	err = writeFile(temp, append(text, '\n'))
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp) // as well as can be: it is harmless
		flush(dir)
		return err
	}
	return unclear(path, flush(dir))
}

// erase removes the entry's file; the caller has its lock.
func erase(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s is removed, and a loss of power may undo that: %v", path, err) // as unclear
	}
	return nil
}

// unclear is an error that came after a file was replaced. It wraps nothing: the
// sentinels of a store say that nothing was changed.
func unclear(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is written, and a loss of power may undo that: %v", path, err)
}

// syncDir makes the names in a directory outlast a loss of power.
func syncDir(path string) error {
	dir, err := openDir(path)
	if err != nil {
		return err
	}
	return flush(dir)
}

func writeFile(path string, text []byte) error {
	f, err := safefile.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// makeDir makes the directory of an app, and those above it that are missing. It
// sees to it that their names outlast a loss of power.
func makeDir(path string) error {
	made, err := safefile.Mkdir(path)
	for _, dir := range made {
		err = errors.Join(err, syncDir(filepath.Dir(dir)))
	}
	return err
}

// explain adds to an error of the file system what to do about it.
func explain(err error) error {
	advice := ""
	switch {
	case errors.Is(err, fs.ErrPermission):
		advice = "give this user the right to read and write the store's directory, or choose another directory"
	case errors.Is(err, syscall.EROFS):
		advice = "the file system is read-only: mount it for writing, or choose another directory"
	case errors.Is(err, syscall.ENOTDIR):
		advice = "a file stands where the store's directory should be: move it away, or choose another directory"
	case errors.Is(err, diskFull), errors.Is(err, quotaFull):
		advice = "the disk is full: make room; until then nothing is changed"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
