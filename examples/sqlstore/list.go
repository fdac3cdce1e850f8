package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// selectEntries selects an app's entries by the beginning of their names. They are put
// into order in Go.
const selectEntries = `SELECT name, etag, record, id, length, ends, broken FROM soloist WHERE substr(name, 1, $1) = $2`

// List calls f for each entry of an app. The time is from before the statement, so that
// a lease that was renewed meanwhile is not called expired.
func (s *Store) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	before := now()
	rows, err := s.DB.QueryContext(ctx, selectEntries, len(app)+1, app+"/")
	if err != nil {
		return err
	}
	all, err := scan(rows, before)
	for _, e := range all {
		if err == nil && !strings.HasPrefix(e.name, app+"/.") && !f(e.name, e.row.entry()) {
			return nil
		}
	}
	return err
}

type named struct {
	name string
	row  row
}

func scan(rows *sql.Rows, now int64) (all []named, err error) {
	defer rows.Close()
	for rows.Next() {
		e := named{row: row{now: now}}
		r := &e.row
		if err := rows.Scan(&e.name, &r.etag, &r.record, &r.id, &r.length, &r.ends, &r.broken); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	return all, rows.Err()
}
