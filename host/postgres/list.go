package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/store"
)

var _ store.Lister = (*Store)(nil)

// What a listing asks for at a time.
const (
	pageSize = 1000
	mostApps = 5000
)

// List implements [store.Lister]: a statement for each thousand entries. Nothing is under way while f runs, which may
// need the only connection.
func (s *Store) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	for after, more := app+"/", true; more; {
		all, err := s.page(ctx, app, after)
		if err != nil {
			return err
		}
		for _, l := range all {
			if !f(l.Name, l.entry()) {
				return nil
			}
			after = l.Name
		}
		more = len(all) == pageSize
	}
	return nil
}

// listed is a row of a listing.
type listed struct {
	Name         string
	Date         time.Time
	ETag, Record string
	State        string
	Checkpoint   int64
}

func (l listed) entry() store.Entry {
	return store.Entry{Revision: store.Revision{ETag: l.ETag, Date: l.Date}, Record: []byte(l.Record),
		State: store.LeaseState(l.State), Checkpoint: l.Checkpoint}
}

// page returns the entries after a name. Those with a dot after the slash are passed over, by two ranges of the index:
// '-', '.', '/' and '0' follow each other, so they are between "app/-..." and all others, which begin after "app//".
func (s *Store) page(ctx context.Context, app, after string) ([]listed, error) {
	return collect(ctx, s, list, app, pgx.RowToStructByPos[listed], s.sql.list, after, app+"/.", app+"//", app+"0", pageSize)
}

// Apps returns the names before the slash of the entries: the apps that have entries here, up to 5,000 of them.
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	return collect(ctx, s, list, "", pgx.RowTo[string], s.sql.apps, mostApps)
}

// collect runs a statement and returns its rows.
func collect[T any](ctx context.Context, s *Store, o op, name string, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	if err := s.prepare(ctx, o, name); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, s.translate(o, name, err)
	}
	all, err := pgx.CollectRows(rows, row)
	return all, s.translate(o, name, err)
}
