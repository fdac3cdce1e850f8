// Package sqlstore is a store of one's own, to be copied: one table of a SQL
// database, in one file. Each interface that is optional is in a
// file of its own; logs have a table of their own, [LogTable]. It is written
// against the comments of the interface and tested by storetest, as any other
// store would be.
//
// SQLite is for replicas on one machine: the machine's clock judges leases. It needs a busy_timeout, or
// calls that meet another's write fail instead of waiting. host/postgres is a store for replicas anywhere.
//
// How a call is made atomic: it looks at the row, decides in Go, and updates
// the row if that has still the version that was looked at; each change gives
// it a new one. An update that met another version has changed nothing, so the
// call looks again. The time of a call is the time of its last look: the update
// proves that nothing has happened to the entry since.
//
// What is not promised: the right length of a lease while the one clock that
// judges is being set, and that a row outlasts what the database does not,
// such as a failover to a copy that lags behind. A record that went back in
// time can start a tick twice.
package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Table is where the entries are. Times are in microseconds.
const Table = `CREATE TABLE IF NOT EXISTS soloist (
	name       TEXT PRIMARY KEY,
	version    TEXT NOT NULL,    -- a new one with each change
	etag       TEXT NOT NULL,    -- the version of the last write
	record     BYTEA NOT NULL,
	checkpoint BYTEA NOT NULL,
	id         TEXT NOT NULL,    -- of the lease; empty: there is none
	length     BIGINT NOT NULL,  -- of the lease
	ends       BIGINT NOT NULL,  -- since 1970
	broken     BOOLEAN NOT NULL
)`

const (
	insert = `INSERT INTO soloist (name, version, etag, record, checkpoint, id, length, ends, broken)
VALUES ($1, $2, $2, $3, '', '', 0, 0, FALSE) ON CONFLICT (name) DO NOTHING`

	update = `UPDATE soloist SET version = $3, etag = $4, record = $5, checkpoint = COALESCE($6, checkpoint),
id = $7, length = $8, ends = $9, broken = $10 WHERE name = $1 AND version = $2`
)

// A Store keeps its entries in a [Table] of DB, which has to be there.
type Store struct {
	DB *sql.DB
}

var (
	_ store.Store              = (*Store)(nil)
	_ store.LeaseBreaker       = (*Store)(nil)
	_ store.ConditionalBreaker = (*Store)(nil)
	_ store.Documenter         = (*Store)(nil)
	_ store.Lister             = (*Store)(nil)
	_ store.Checkpointer       = (*lease)(nil)
)

// Create makes the entry.
func (s *Store) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	etag := rand.Text()
	made, err := one(s.DB.ExecContext(ctx, insert, name, etag, record))
	if err == nil && !made {
		err = fs.ErrExist
	}
	if err != nil {
		return store.Entry{}, err
	}
	r := row{etag: etag, record: append([]byte(nil), record...), now: now()}
	return r.entry(), nil
}

// Read returns the entry.
func (s *Store) Read(ctx context.Context, name string) (store.Entry, error) {
	r, err := s.look(ctx, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return store.Entry{}, err
	}
	return r.entry(), err
}

// Delete removes an entry that no replica holds; otherwise store.ErrLost.
func (s *Store) Delete(ctx context.Context, name string) error {
	for {
		r, err := s.look(ctx, name)
		if err != nil {
			return err
		}
		if r.state().Live() {
			return store.ErrLost
		}
		const query = "DELETE FROM soloist WHERE name = $1 AND version = $2"
		if done, err := one(s.DB.ExecContext(ctx, query, name, r.version)); done || err != nil {
			return err
		}
	}
}

// Break ends a lease.
func (s *Store) Break(ctx context.Context, name string, period time.Duration) error {
	_, err := s.change(ctx, name, func(r *row) error { return r.end(period) })
	return err
}

// BreakUnchanged ends the lease of an entry that has still an ETag.
func (s *Store) BreakUnchanged(ctx context.Context, name, etag string) error {
	_, err := s.change(ctx, name, func(r *row) error {
		if r.etag != etag {
			return store.ErrChanged
		}
		return r.end(0)
	})
	return err
}

// Limits: a renewal is one small write, so leases may be short, but not shorter
// than the database may take to answer.
func (s *Store) Limits() (shortest, longest time.Duration) { return 5 * time.Second, 5 * time.Minute }

// Lease returns a handle.
func (s *Store) Lease(name, id string) store.Lease { return &lease{s, name, id} }

type lease struct {
	store    *Store
	name, id string
}

func (l *lease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if shortest, longest := l.store.Limits(); d < shortest || d > longest {
		return store.Revision{}, fmt.Errorf("a lease of %v: allowed is %v to %v", d, shortest, longest)
	}
	return l.store.change(ctx, l.name, func(r *row) error {
		switch {
		case r.state().Live() && (r.id != l.id || r.broken):
			return store.ErrHeld
		case r.etag != etag:
			return store.ErrChanged
		}
		r.id, r.length, r.broken = l.id, d.Microseconds(), false
		r.ends = r.now + r.length
		return nil
	})
}

func (l *lease) Renew(ctx context.Context) (store.Revision, error) {
	return l.store.change(ctx, l.name, func(r *row) error {
		if r.id != l.id || r.broken {
			return store.ErrLost
		}
		r.ends = r.now + r.length
		return nil
	})
}

func (l *lease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.write(ctx, etag, record, nil)
}

func (l *lease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if len(checkpoint) > store.MaxCheckpoint {
		return store.Revision{}, fmt.Errorf("a checkpoint of %d bytes: allowed are %d", len(checkpoint), store.MaxCheckpoint)
	}
	return l.write(ctx, etag, record, append([]byte{}, checkpoint...)) // not nil
}

// write keeps the checkpoint as it is if the new one is nil.
func (l *lease) write(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.store.change(ctx, l.name, func(r *row) error {
		if err := r.guard(l.id, etag); err != nil {
			return err
		}
		r.record, r.etag = record, rand.Text()
		if checkpoint != nil {
			r.checkpoint = &checkpoint
		}
		return nil
	})
}

func (l *lease) Load(ctx context.Context, etag string) ([]byte, error) {
	var checkpoint []byte
	r, err := l.store.look(ctx, l.name, column{"checkpoint", &checkpoint})
	if err == nil {
		err = r.guard(l.id, etag)
	}
	if err != nil {
		return nil, err
	}
	return checkpoint, nil
}

func (l *lease) Release(ctx context.Context) error {
	_, err := l.store.change(ctx, l.name, func(r *row) error {
		if r.id != l.id {
			return store.ErrLost
		}
		r.id = ""
		return nil
	})
	return err
}

// row is an entry, and the time, as read by one look.
type row struct {
	version, etag string
	record        []byte
	checkpoint    *[]byte // to be written; nil: stays as it is
	id            string
	length, ends  int64
	broken        bool
	now           int64
}

func (r *row) state() store.LeaseState {
	live := r.now < r.ends
	switch {
	case r.id == "":
		return store.Available
	case r.broken && live:
		return store.Breaking
	case r.broken:
		return store.Broken
	case live:
		return store.Leased
	}
	return store.Expired
}

// end breaks the lease after period, at the latest when it ends by itself.
func (r *row) end(period time.Duration) error {
	if r.id == "" {
		return store.ErrLost
	}
	if period >= 0 {
		r.ends = min(r.ends, r.now+period.Microseconds())
	}
	r.broken = true
	return nil
}

// guard says why the entry may not be written under an id.
func (r *row) guard(id, etag string) error {
	if r.id != id || !r.state().Live() {
		return store.ErrLost
	}
	if r.etag != etag {
		return store.ErrChanged
	}
	return nil
}

func (r *row) stamp() store.Revision {
	return store.Revision{ETag: r.etag, Date: time.UnixMicro(r.now)}
}

func (r *row) entry() store.Entry {
	return store.Entry{Revision: r.stamp(), Record: r.record, State: r.state()}
}

type column struct {
	name string
	dest any
}

// look reads an entry, and more of its columns. fs.ErrNotExist comes with the
// time.
func (s *Store) look(ctx context.Context, name string, more ...column) (row, error) {
	var r row
	columns := "version, etag, record, id, length, ends, broken"
	dest := []any{&r.version, &r.etag, &r.record, &r.id, &r.length, &r.ends, &r.broken}
	for _, c := range more {
		columns, dest = columns+", "+c.name, append(dest, c.dest)
	}
	err := s.DB.QueryRowContext(ctx, "SELECT "+columns+" FROM soloist WHERE name = $1", name).Scan(dest...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return row{now: now()}, fs.ErrNotExist
	case err != nil:
		return row{}, err
	}
	r.now = now()
	return r, nil
}

// now is the one clock, in microseconds.
func now() int64 { return time.Now().UnixMicro() }

// change lets decide change what a look at the entry has read, and writes the
// result, all or nothing.
func (s *Store) change(ctx context.Context, name string, decide func(*row) error) (store.Revision, error) {
	for {
		r, err := s.look(ctx, name)
		if err != nil {
			return store.Revision{}, err
		}
		if err := decide(&r); err != nil {
			return store.Revision{}, err
		}
		done, err := one(s.DB.ExecContext(ctx, update, name, r.version,
			rand.Text(), r.etag, r.record, r.checkpoint, r.id, r.length, r.ends, r.broken))
		if err != nil {
			return store.Revision{}, err
		}
		if done {
			return r.stamp(), nil
		}
	}
}

// one reports whether a statement has changed the one row that it could.
func one(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}
