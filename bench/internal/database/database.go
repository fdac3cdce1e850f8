// Package database is the PostgreSQL where replicas meet: a database for each fleet.
package database

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

// URL says how the replicas of a fleet connect to its database.
func URL(w replica.Settings) string { return w.Service + " dbname=" + w.Space }

// Open connects to the database of a fleet, with pgx's defaults.
func Open(ctx context.Context, w replica.Settings) (*pgxpool.Pool, error) {
	return pgxpool.New(ctx, URL(w))
}

// Prepare runs what the first replica of a fleet has to do, on one replica at a time. It holds no transaction meanwhile: an index
// that is made concurrently would wait for its end.
func Prepare(ctx context.Context, pool *pgxpool.Pool, do func() error) error {
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		for got := false; !got; {
			if err := c.QueryRow(ctx, "select pg_try_advisory_lock(1)").Scan(&got); err != nil {
				return err
			}
			if err := replica.Wait(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
		err := do()
		_, unlocked := c.Exec(ctx, "select pg_advisory_unlock(1)")
		return errors.Join(err, unlocked)
	})
}

// A Server is the connection of the bench itself.
type Server struct{ pool *pgxpool.Pool }

// Connect returns once the server counts statements.
func Connect(ctx context.Context, service string) (*Server, error) {
	pool, err := Open(ctx, replica.Settings{Service: service, Space: "postgres"})
	if err != nil {
		return nil, err
	}
	for {
		_, err := pool.Exec(ctx, "create extension pg_stat_statements")
		if refused := new(pgconn.ConnectError); !errors.As(err, &refused) {
			return &Server{pool}, err
		}
		if err := replica.Wait(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// Create makes the database of a fleet.
func (s *Server) Create(ctx context.Context, space string) error {
	_, err := s.pool.Exec(ctx, "create database "+pgx.Identifier{space}.Sanitize())
	return err
}

// A Table is what the server knows of a table.
type Table struct {
	Name                     string
	Rows, Updates, Hot, Dead int64 // rows that were inserted; updates, and how many of them were HOT; an estimate of dead rows
	Size, Indexes            int64 // bytes
	Vacuums                  int64 // by the server itself
}

// Tables returns the tables of a fleet in which something was written, and the write-ahead log of the whole server.
func (s *Server) Tables(ctx context.Context, space string) ([]Table, error) {
	c := s.pool.Config().ConnConfig.Copy()
	c.Database = space // the server shows the figures of this one alone
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `select relname::text, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_dead_tup, pg_table_size(relid),
			pg_indexes_size(relid), autovacuum_count
		from pg_stat_user_tables where n_tup_ins + n_tup_upd + n_tup_del > 0
		union all select '(WAL)', 0, 0, 0, 0, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, 0, 0 order by 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
}

// Statements is how many statements clients have sent to the database of a fleet so far, those that begin and end transactions
// included.
func (s *Server) Statements(ctx context.Context, space string) (n int, err error) {
	err = s.pool.QueryRow(ctx, `select coalesce(sum(calls), 0)::bigint from pg_stat_statements s
		join pg_database d on d.oid = s.dbid where d.datname = $1`, space).Scan(&n)
	return n, err
}
