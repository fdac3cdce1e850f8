package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

func open(t testing.TB, c postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return planted(t, s)
}

// The two instances share nothing but the server. The second one prepares no statements, as a pooler may demand.
func TestStore(t *testing.T) {
	url := start(t)
	one := patient{open(t, postgres.Config{URL: url})}
	other := patient{open(t, postgres.Config{URL: url + " default_query_exec_mode=exec pool_max_conns=1"})}
	put, kept := effects(t, url)
	storetest.Test(t, storetest.Harness{
		New: func(*testing.T) store.Store { return one },
		Two: func(*testing.T) (store.Store, store.Store) { return one, other },
		Put: put, Kept: kept,
		Differences: takesLess,
	})
	t.Run("transactions without prepared statements", func(t *testing.T) {
		third := patient{open(t, postgres.Config{URL: url + " default_query_exec_mode=exec"})}
		storetest.Test(t, storetest.Harness{New: func(*testing.T) store.Store { return third }, Put: put, Kept: kept, Differences: takesLess})
	})
}

// A patient store has no leases of a second, which a busy machine may outlast between two calls. Virtual time has them.
type patient struct{ *postgres.Store }

func (s patient) Limits() (shortest, longest time.Duration) { return 5 * time.Second, time.Minute }

var takesLess = map[string]string{"Limits": "a patient store also takes leases of a second"}

// effects are rows of a table of the user's own, one for each time that a transaction has put a key.
func effects(t testing.TB, url string) (put func(context.Context, any, string) error, kept func(context.Context, string) (int, error)) {
	run(t, session(t, url), "CREATE TABLE effects (key text)")
	put = func(ctx context.Context, tx any, key string) error {
		_, err := tx.(pgx.Tx).Exec(ctx, "INSERT INTO effects VALUES ($1)", key)
		return err
	}
	kept = func(ctx context.Context, key string) (n int, err error) {
		c, err := pgx.Connect(ctx, url) // of the bubble of the test
		if err != nil {
			return 0, err
		}
		defer c.Close(ctx)
		err = c.QueryRow(ctx, "SELECT count(*) FROM effects WHERE key = $1", key).Scan(&n)
		return n, err
	}
	return put, kept
}
