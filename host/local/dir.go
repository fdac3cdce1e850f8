package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/store"
)

// Dir is a [store.Store] in a directory, for any number of processes of one
// user on one machine. Root may take part, since what it makes there belongs to
// the owner of the directory. An entry "app/job" is the directory <Path>/app/job.d. The file in it whose
// name begins with the highest number is the entry as it is; no file there changes.
//
// A process may die at any point, and the machine may lose power: the entry is
// then as it was before the call or after it. A process may also stop at any point, for as long as it likes: there are
// no locks, so no other process waits for it. When it goes on, its call takes effect only if no other has changed the
// entry meanwhile. A file that is not an entry is
// never overwritten: each call on it fails with an error that names it. Files
// are regular ones; pipes, symbolic links and the like are refused. The file system needs hard links.
//
// Errors name the path and what to do about it. fs.ErrPermission: this user may
// not use the directory.
type Dir struct {
	// Path is the directory. Create makes it, and what is missing above it.
	// Empty: every call fails. Make it absolute: each call resolves a relative
	// path, so after os.Chdir it names another store, and a tick runs twice.
	Path string

	// Now, when set, is the only clock of the store: it judges when a lease
	// ends, and gives the Date; all processes must have the same. Nil: time.Now
	// gives the Date, and the time since the machine started ends leases, where
	// the system has that. That time is real in a bubble of testing/synctest
	// too: there, set Now to time.Now.
	Now func() time.Time

	clock func() instant // nil: the machine's; for tests
	disk  disk
}

var (
	_ store.Store              = Dir{}
	_ store.LeaseBreaker       = Dir{}
	_ store.ConditionalBreaker = Dir{}
	_ store.Remover            = Dir{}
)

// Create implements [store.Store].
func (d Dir) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return update(d.update).create(ctx, name, record)
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
	return update(d.update).end(ctx, name, period, always)
}

// BreakUnchanged implements [store.ConditionalBreaker]. It ends the lease of another machine too.
func (d Dir) BreakUnchanged(ctx context.Context, name, etag string) error {
	return update(d.update).end(ctx, name, 0, only(etag))
}

// Remove implements [store.Remover].
func (d Dir) Remove(ctx context.Context, name, etag string) error {
	return update(d.update).remove(ctx, name, only(etag))
}

// update tries until no other process was faster. Each round of it that another one spoils is a step of that one's.
func (d Dir) update(ctx context.Context, name string, f change) (entry, time.Time, error) {
	dir, err := d.place(name)
	if err != nil {
		return entry{}, time.Time{}, err
	}
	for {
		e, now, err := d.round(name, dir, f)
		if !errors.Is(err, errBeaten) {
			return e, now, explain(err)
		}
		if err := ctx.Err(); err != nil {
			return entry{}, time.Time{}, err
		}
	}
}

// round makes a change to the entry as it is. The answer is true of an instant at which no later generation was
// there: a read that goes by an older one could see a lease as expired that was renewed in time.
func (d Dir) round(name, dir string, f change) (entry, time.Time, error) {
	g, e, err := d.find(name, dir)
	if err != nil {
		return entry{}, time.Time{}, err
	}
	now := d.instant()
	sighted := e.Lease.tell(now)
	before := e
	err = e.apply(f, now.wall)
	if e.Lease != before.Lease {
		e.Lease.note(now)
	}
	switch {
	case e != before && !before.exists():
		return e, now.wall, cmp.Or(d.begin(name, dir, e), err)
	case e != before:
		if failed := d.advance(g, name, e); failed != nil {
			return e, now.wall, failed
		}
		if !e.exists() {
			_ = d.bury(name, dir) // else the process that makes the entry again does it
		}
		return e, now.wall, err
	case sighted && d.advance(g, name, e) == nil: // if it fails, the lease seems to last longer, which is safe
		return e, now.wall, err
	}
	return e, now.wall, cmp.Or(d.check(g), err)
}

// instant reads the clocks of the store.
func (d Dir) instant() instant {
	if d.clock != nil {
		return d.clock()
	}
	now := instant{wall: clock(d.Now).Round(0)} // a file keeps no monotonic reading
	if d.Now == nil {
		now.boot, now.start = elapsed.Boot()
	}
	return now
}

// find returns the highest generation of an entry, and what it has: no entry if there is none.
func (d Dir) find(name, dir string) (generation, entry, error) {
	s, err := d.list(dir)
	g := s.highest(dir)
	if err != nil || g.n == 0 {
		return g, entry{}, err
	}
	e, err := d.load(g, name)
	return g, e, beaten(err)
}

const suffix = ".d" // no part of a name has a dot inside

// place returns the directory of an entry.
func (d Dir) place(name string) (string, error) {
	if d.Path == "" {
		return "", errNoPath
	}
	rel := filepath.FromSlash(name) + suffix
	if !filepath.IsLocal(rel) { // such as NUL on Windows
		return "", fmt.Errorf("%s is not a possible name of a file here: choose another app or job name", rel)
	}
	return filepath.Join(d.Path, rel), nil
}

var errNoPath = errors.New("local.Dir has no Path: name a directory for it")
