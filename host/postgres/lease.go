package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/store"
)

var (
	_ store.LeaseBreaker       = (*Store)(nil)
	_ store.ConditionalBreaker = (*Store)(nil)
	_ store.Lease              = (*lease)(nil)
	_ store.Transactor         = (*lease)(nil)
)

// A lease is the lease of an entry under one id.
type lease struct {
	store    *Store
	name, id string
}

// Lease implements [store.Store].
func (s *Store) Lease(name, id string) store.Lease { return &lease{s, name, id} }

func (l *lease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if err := l.checkLength(acquire, d); err != nil {
		return store.Revision{}, err
	}
	return l.store.together(ctx, acquire, l.name, l.store.sql.acquire, l.id, d.Microseconds(), etag)
}

func (l *lease) checkLength(o op, d time.Duration) error {
	if shortest, longest := l.store.Limits(); d < shortest || d > longest {
		return fmt.Errorf("postgres: %s %s: a lease of %s: want %s to %s", o, l.name, d, shortest, longest)
	}
	return nil
}

func (l *lease) Renew(ctx context.Context) (store.Revision, error) {
	return l.store.together(ctx, renew, l.name, l.store.sql.renew, l.id)
}

func (l *lease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if err := checkRecord(write, l.name, record); err != nil {
		return store.Revision{}, err
	}
	return l.store.together(ctx, write, l.name, l.store.sql.write, l.id, etag, string(record))
}

func (l *lease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if err := checkSaved(save, l.name, record, checkpoint); err != nil {
		return store.Revision{}, err
	}
	return l.store.change(ctx, save, l.name, l.store.sql.save, l.id, etag, string(record), notNil(checkpoint))
}

func (l *lease) Release(ctx context.Context) error {
	_, err := l.store.together(ctx, release, l.name, l.store.sql.release, l.id)
	if err == nil {
		l.store.news.tell(l.name)
	}
	return err
}

func (l *lease) AcquireWrite(ctx context.Context, d time.Duration, etag string, record []byte) (store.Revision, error) {
	if err := errors.Join(l.checkLength(acquireWrite, d), checkRecord(acquireWrite, l.name, record)); err != nil {
		return store.Revision{}, err
	}
	return l.store.together(ctx, acquireWrite, l.name, l.store.sql.acquireWrite, l.id, d.Microseconds(), etag, string(record))
}

func (l *lease) WriteRelease(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if err := checkRecord(writeRelease, l.name, record); err != nil {
		return store.Revision{}, err
	}
	r, err := l.store.together(ctx, writeRelease, l.name, l.store.sql.writeRelease, l.id, etag, string(record))
	if err == nil {
		l.store.news.tell(l.name)
	}
	return r, err
}

func (l *lease) Load(ctx context.Context, etag string) ([]byte, error) {
	var verdict string
	var size int64
	var checkpoint []byte
	args := []any{l.name, l.id, etag, store.MaxCheckpoint}
	err := l.store.row(ctx, load, l.name, l.store.sql.load, args, &verdict, &size, &checkpoint)
	if err == nil {
		err = verdicts[verdict]
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, refuse(load, l.name, fs.ErrNotExist)
	case err == nil && size > store.MaxCheckpoint:
		err = store.ErrTooLarge
	}
	if err != nil {
		return nil, refuse(load, l.name, err)
	}
	return checkpoint, nil
}

// Break implements [store.LeaseBreaker].
func (s *Store) Break(ctx context.Context, name string, period time.Duration) error {
	var after *int64 // nil: when it would have ended
	if period >= 0 {
		n := period.Microseconds()
		after = &n
	}
	_, err := s.change(ctx, breaks, name, s.sql.breaks, after)
	return err
}

// BreakUnchanged implements [store.ConditionalBreaker].
func (s *Store) BreakUnchanged(ctx context.Context, name, etag string) error {
	_, err := s.change(ctx, breaks, name, s.sql.breakUnchanged, int64(0), etag)
	return err
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
