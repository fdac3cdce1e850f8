package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"slices"

	"github.com/soloist-go/soloist/store"
)

// LogTable is where the logs are: a row for each append. The first one of a log has its
// size, so that it is what an append and a removal at the same time compete for.
const LogTable = `CREATE TABLE IF NOT EXISTS soloist_log (
	name  TEXT NOT NULL,
	start BIGINT NOT NULL, -- where the bytes begin in the log
	size  BIGINT NOT NULL, -- of the log, in the row that starts at zero
	bytes BYTEA NOT NULL,
	PRIMARY KEY (name, start)
)`

const (
	insertBytes = `INSERT INTO soloist_log (name, start, size, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT (name, start) DO NOTHING`

	growLog = `UPDATE soloist_log SET size = $3 WHERE name = $1 AND start = 0 AND size = $2`

	selectBytes = `SELECT start, bytes FROM soloist_log
WHERE name = $1 AND (start = 0 OR start < $3 AND start + length(bytes) > $2) ORDER BY start`

	selectLogs = `SELECT name, size FROM soloist_log WHERE start = 0 AND substr(name, 1, $1) = $2`
)

var _ store.Appender = (*Store)(nil)

// Append appends b to a log that has size bytes.
func (s *Store) Append(ctx context.Context, name string, size int64, b []byte) error {
	if len(b) == 0 || len(b) > store.MaxAppend {
		return fmt.Errorf("an append of %d bytes: want 1 to %d", len(b), store.MaxAppend)
	}
	end := size + int64(len(b))
	return s.both(ctx, store.ErrChanged, func(tx *sql.Tx) (bool, error) {
		if size == 0 {
			return true, nil
		}
		return one(tx.ExecContext(ctx, growLog, name, size, end))
	}, func(tx *sql.Tx) (bool, error) {
		return one(tx.ExecContext(ctx, insertBytes, name, size, end, b))
	})
}

// RemoveLog removes a log. The first row goes first: an append that is under way has it.
func (s *Store) RemoveLog(ctx context.Context, name string) error {
	return s.both(ctx, fs.ErrNotExist, func(tx *sql.Tx) (bool, error) {
		return one(tx.ExecContext(ctx, "DELETE FROM soloist_log WHERE name = $1 AND start = 0", name))
	}, func(tx *sql.Tx) (bool, error) {
		_, err := tx.ExecContext(ctx, "DELETE FROM soloist_log WHERE name = $1", name)
		return true, err
	})
}

// both makes two changes or none. If one of them changes nothing, the error is otherwise.
func (s *Store) both(ctx context.Context, otherwise error, changes ...func(*sql.Tx) (bool, error)) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // which does nothing after Commit
	for _, change := range changes {
		done, err := change(tx)
		if err != nil {
			return err
		}
		if !done {
			return otherwise
		}
	}
	return tx.Commit()
}

// ReadLog returns the bytes of a log from offset on. The first row is read, too: it shows
// that there is a log.
func (s *Store) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	end := offset + int64(n)
	rows, err := s.DB.QueryContext(ctx, selectBytes, name, offset, end)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []byte
	found := false
	for rows.Next() {
		var start int64
		var b []byte
		if err := rows.Scan(&start, &b); err != nil {
			return nil, err
		}
		found = true
		from, to := max(offset-start, 0), min(end-start, int64(len(b)))
		if from < to {
			all = append(all, b[from:to]...)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !found {
		return nil, fs.ErrNotExist
	}
	return all, nil
}

// Logs calls f for each log of an entry. They are put into order in Go.
func (s *Store) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	prefix := store.LogName(entry, "")
	rows, err := s.DB.QueryContext(ctx, selectLogs, len(prefix), prefix)
	if err != nil {
		return err
	}
	all, err := scanLogs(rows)
	for _, l := range all {
		if err == nil && !f(l.name, l.size) {
			return nil
		}
	}
	return err
}

type sized struct {
	name string
	size int64
}

func scanLogs(rows *sql.Rows) (all []sized, err error) {
	defer rows.Close()
	for rows.Next() {
		var l sized
		if err := rows.Scan(&l.name, &l.size); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b sized) int { return cmp.Compare(a.name, b.name) })
	return all, rows.Err()
}
