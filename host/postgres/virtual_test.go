package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// virtual opens a store whose server judges by the time of the bubble: before each call the session gets it as a setting. The
// statements are those of any store but for that.
func virtual(t testing.TB, url string) *postgres.Store {
	t.Helper()
	c, err := pgxpool.ParseConfig(url)
	must(t, err)
	c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		_, err := conn.Exec(ctx, "SELECT set_config('virtual.now', $1, false)", time.Now().Format(time.RFC3339Nano))
		return true, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	must(t, err)
	t.Cleanup(pool.Close)
	s := open(t, postgres.Config{Pool: pool})
	s.UseClock("current_setting('virtual.now')::timestamptz")
	return s
}

// The suite in no time also covers the end of the longest lease.
func TestStoreInVirtualTime(t *testing.T) {
	url := start(t)
	storetest.Test(t, storetest.Harness{
		New:     func(t *testing.T) store.Store { return virtual(t, url) },
		Virtual: true,
	})
}
