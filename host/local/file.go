package local

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Schema  int    `json:"schema"`
	Entry   string `json:"entry"`
	Removed bool   `json:"removed,omitempty"` // the entry is no more
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

// fileOf returns the text of a state file.
func fileOf(name string, e entry) ([]byte, error) {
	f := file{Schema: schemaPlain, Entry: name, Removed: !e.exists(), entry: e}
	if e.Checkpoint != "" {
		f.Schema = schemaCheckpoint
	}
	text, err := json.Marshal(f)
	return append(text, '\n'), err
}

// load reads a generation of an entry. The entry may be none. fs.ErrNotExist: there is no such file any more.
func (d Dir) load(g generation, name string) (entry, error) {
	text, err := d.disk.read(g.path(), maxFile)
	if err != nil {
		return entry{}, err
	}
	var f file
	err = json.Unmarshal(text, &f)
	if err == nil && f.Schema > schemaCheckpoint {
		return entry{}, fmt.Errorf("%s has schema %d, of a newer version of this program, and is left as it is: update the program", g.path(), f.Schema)
	}
	if err == nil {
		err = f.check(name)
	}
	if err != nil {
		return entry{}, fmt.Errorf("%s is not the state of this entry, and is left as it is (%w): mend it, or move %s away to begin anew", g.path(), err, g.dir)
	}
	return f.entry, nil
}

// check refuses whatever this program would not have written.
func (f *file) check(name string) error {
	switch {
	case f.Schema < schemaPlain:
		return fmt.Errorf("schema %d is unknown", f.Schema)
	case f.Entry != name:
		return fmt.Errorf("it is the entry %q", f.Entry)
	case f.Removed && f.entry == entry{}:
		return nil
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

// unclear is an error that came after a file was replaced. It wraps nothing: the
// sentinels of a store say that nothing was changed.
func unclear(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is written, and a loss of power may undo that: %v", path, err)
}

// makeDir makes the directory of an app, and those above it that are missing. It
// sees to it that their names outlast a loss of power.
func (d Dir) makeDir(path string) error {
	d.disk.at("mkdir", path)
	made, err := safefile.Mkdir(path)
	for _, dir := range made {
		err = errors.Join(err, d.disk.sync(filepath.Dir(dir)))
	}
	return err
}

// explain adds to an error of the file system what to do about it.
func explain(err error) error {
	advice := ""
	var link *os.LinkError
	switch {
	case errors.Is(err, diskFull), errors.Is(err, quotaFull):
		advice = "the disk is full: make room; until then nothing is changed"
	case errors.As(err, &link) && link.Op == "link":
		advice = "the store needs a file system with hard links: choose another directory"
	case errors.Is(err, fs.ErrPermission):
		advice = "give this user the right to read and write the store's directory, or choose another directory"
	case errors.Is(err, syscall.EROFS):
		advice = "the file system is read-only: mount it for writing, or choose another directory"
	case errors.Is(err, syscall.ENOTDIR):
		advice = "a file stands where the store's directory should be: move it away, or choose another directory"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
