package postgres

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/store"
)

var _ store.Appender = (*Store)(nil)

// Append implements [store.Appender]. The row of the log is what two appends, or an append and a removal, compete for.
func (s *Store) Append(ctx context.Context, name string, size int64, b []byte) error {
	if len(b) == 0 || len(b) > store.MaxAppend {
		return fmt.Errorf("postgres: %s %s: an append of %d bytes: want 1 to %d", appendLog, name, len(b), store.MaxAppend)
	}
	if size == 0 {
		return s.one(ctx, appendLog, name, store.ErrChanged, s.sql.createLog, name, b)
	}
	return s.one(ctx, appendLog, name, store.ErrChanged, s.sql.appendLog, name, b, size)
}

// RemoveLog implements [store.Appender]. The chunks go with the row of the log, also those of an append that was under
// way: a foreign key sees them, and the statement's own view of the rows would not.
func (s *Store) RemoveLog(ctx context.Context, name string) error {
	return s.one(ctx, removeLog, name, fs.ErrNotExist, s.sql.dropLog, name)
}

// one runs a statement that changes one row; none is the error otherwise.
func (s *Store) one(ctx context.Context, o op, name string, otherwise error, statement string, args ...any) error {
	if err := s.prepare(ctx, o, name); err != nil {
		return err
	}
	tag, err := s.pool.Exec(ctx, statement, args...)
	if err != nil {
		return s.translate(o, name, err)
	}
	if tag.RowsAffected() == 0 {
		return refuse(o, name, otherwise)
	}
	return nil
}

// ReadLog implements [store.Appender].
func (s *Store) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	type chunk struct {
		Start *int64 // nil: the log has none in the range
		Bytes []byte
	}
	end := offset + int64(n)
	chunks, err := collect(ctx, s, readLog, name, pgx.RowToStructByPos[chunk], s.sql.readLog, name, offset, end, store.MaxAppend)
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 {
		return nil, refuse(readLog, name, fs.ErrNotExist)
	}
	var all []byte
	for _, c := range chunks {
		if c.Start != nil {
			all = append(all, c.Bytes[max(offset-*c.Start, 0):min(end-*c.Start, int64(len(c.Bytes)))]...)
		}
	}
	return all, nil
}

// Logs implements [store.Appender].
func (s *Store) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	type log struct {
		Name string
		Size int64
	}
	first := store.LogName(entry, "")
	last := first[:len(first)-1] + "0" // the character after the slash
	all, err := collect(ctx, s, listLogs, entry, pgx.RowToStructByPos[log], s.sql.listLogs, first, last)
	for _, l := range all {
		if !f(l.Name, l.Size) {
			break
		}
	}
	return err
}
