package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/filelock"
	"github.com/soloist-go/soloist/store"
)

// Dir is a [store.Store] in a directory, for any number of processes of one
// user on one machine. Root may take part, since what it makes there belongs to
// the owner of the directory. An entry "app/job" is the file <Path>/app/job.json; the
// job.lock beside it guards its updates and stays.
//
// A process may die at any point, and the machine may lose power: the entry is
// then as it was before the call or after it. A file that is not an entry is
// never overwritten: each call on it fails with an error that names it. Files
// are regular ones; pipes, symbolic links and the like are refused.
//
// Errors tell the path and what to do about it. fs.ErrPermission: this user may
// not use the directory.
type Dir struct {
	// Path is the directory. Create makes it, and what is missing above it.
	// Empty: every call fails. Make it absolute: each call resolves a relative
	// path, so after os.Chdir it names another store, and a tick runs twice.
	Path string

	// Now, when set, is the only clock of the store: it judges when a lease
	// ends, and tells the Date; all processes must have the same. Nil: time.Now
	// tells the Date, and the time since the machine started ends leases, where
	// the system tells that. That one is real in a bubble of testing/synctest
	// too: there, set Now to time.Now.
	Now func() time.Time

	clock func() instant // nil: the machine's; for tests
}

var (
	_ store.Store              = Dir{}
	_ store.LeaseBreaker       = Dir{}
	_ store.ConditionalBreaker = Dir{}
	_ store.Remover            = Dir{}
)

// Create implements [store.Store].
func (d Dir) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return update(d.insert).create(ctx, name, record)
}

// Read implements [store.Store].
func (d Dir) Read(ctx context.Context, name string) (store.Entry, error) {
	return update(d.update).read(ctx, name)
}

// Lease implements [store.Store].
func (d Dir) Lease(name, id string) store.Lease {
	return handle{update: d.update, name: name, id: id}
}

// Limits returns [Shortest] and [Longest].
func (d Dir) Limits() (shortest, longest time.Duration) { return Shortest, Longest }

// Break implements [store.LeaseBreaker]; see [Memory.Break].
func (d Dir) Break(ctx context.Context, name string, period time.Duration) error {
	return update(d.update).end(ctx, name, period)
}

// BreakUnchanged implements [store.ConditionalBreaker]. It ends the lease of another machine too.
func (d Dir) BreakUnchanged(ctx context.Context, name, etag string) error {
	return update(d.update).endUnchanged(ctx, name, etag)
}

// Remove implements [store.Remover]. The empty lock file of the entry stays: another process may wait
// for it.
func (d Dir) Remove(ctx context.Context, name, etag string) error {
	return update(d.update).remove(ctx, name, func(now string) bool { return now == etag })
}

// insert is the update that may make the entry.
func (d Dir) insert(ctx context.Context, name string, f change) (entry, time.Time, error) {
	path, err := d.file(name)
	if err == nil {
		err = makeDir(filepath.Dir(path))
	}
	if err != nil {
		return entry{}, time.Time{}, explain(err)
	}
	return d.locked(ctx, name, path, f)
}

// update leaves no trace of a name that has no entry.
func (d Dir) update(ctx context.Context, name string, f change) (entry, time.Time, error) {
	path, err := d.file(name)
	if err == nil {
		_, err = os.Lstat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, d.instant().wall, fs.ErrNotExist
	}
	if err != nil {
		return entry{}, time.Time{}, explain(err)
	}
	return d.locked(ctx, name, path, f)
}

// locked lets one caller of the machine at a time read, change and replace the
// file. Reads come here too: a read beside an update could see a lease as
// expired that the update still honours.
func (d Dir) locked(ctx context.Context, name, path string, f change) (_ entry, _ time.Time, err error) {
	unlock, err := filelock.Lock(ctx, strings.TrimSuffix(path, ".json")+".lock")
	if err != nil {
		return entry{}, time.Time{}, explain(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	e, err := load(path, name)
	if err != nil {
		return entry{}, time.Time{}, explain(err)
	}
	now := d.instant()
	sighted := e.Lease.tell(now)
	before := e
	err = e.apply(f, now.wall)
	if e.Lease != before.Lease {
		e.Lease.note(now)
	}
	switch {
	case before.exists() && !e.exists():
		err = errors.Join(err, explain(erase(path)))
	case e != before:
		err = errors.Join(err, explain(save(path, name, e)))
	case sighted:
		_ = save(path, name, e) // if it fails, the lease seems to last longer, which is safe
	}
	return e, now.wall, err
}

// file returns the path of an entry's file.
func (d Dir) file(name string) (string, error) {
	if d.Path == "" {
		return "", errNoPath
	}
	rel := filepath.FromSlash(name) + ".json"
	if !filepath.IsLocal(rel) { // such as NUL on Windows
		return "", fmt.Errorf("%s is not a possible name of a file here: choose another app or job name", rel)
	}
	return filepath.Join(d.Path, rel), nil
}

var errNoPath = errors.New("local.Dir has no Path: name a directory for it")
