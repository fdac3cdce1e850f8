package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// virtual opens a store whose server judges by the time of the bubble: before each call the session gets it as a setting. The
// statements are those of any store but for that.
func virtual(t testing.TB, url, schema string) *postgres.Store {
	t.Helper()
	c, err := pgxpool.ParseConfig(url)
	must(t, err)
	c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		return true, setTime(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	must(t, err)
	t.Cleanup(pool.Close)
	s := open(t, postgres.Config{Pool: pool, Schema: schema})
	s.UseClock("current_setting('virtual.now')::timestamptz")
	return s
}

// The suite in no time also covers the end of the longest lease.
func TestStoreInVirtualTime(t *testing.T) {
	url := start(t)
	put, kept := effects(t, url)
	storetest.Test(t, storetest.Harness{
		New:     func(t *testing.T) store.Store { return timed{virtual(t, url, "")} },
		Virtual: true,
		Put:     put, Kept: kept,
	})
}

// A timed store also sets the time before the write of a transaction, which may have been open for long.
type timed struct{ *postgres.Store }

func (s timed) Lease(name, id string) store.Lease {
	l := s.Store.Lease(name, id)
	return timedLease{l, l.(store.Transactor)}
}

type timedLease struct {
	store.Lease
	store.Transactor
}

func (l timedLease) Transact(ctx context.Context, f func(any, store.TransactionWrite) error) (store.Revision, error) {
	return l.Transactor.Transact(ctx, func(tx any, write store.TransactionWrite) error {
		return f(tx, func(ctx context.Context, etag string, record, checkpoint []byte) error {
			if err := setTime(ctx, tx.(pgx.Tx)); err != nil {
				return err
			}
			return write(ctx, etag, record, checkpoint)
		})
	})
}

func setTime(ctx context.Context, conn interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}) error {
	_, err := conn.Exec(ctx, "SELECT set_config('virtual.now', $1, false)", time.Now().Format(time.RFC3339Nano))
	return err
}
