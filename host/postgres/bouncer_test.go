package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/host/storetest"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/store"
)

// A PgBouncer in transaction mode gives each transaction any of its connections. The store keeps its contract through it, in
// each way of running statements that the PgBouncer allows, and says that it cannot watch.
func TestThroughPgBouncer(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			at := server.New(t)
			bouncer := at.Bouncer(t, mode == "cache_statement")
			if mode == "cache_statement" && !bouncer.Prepares {
				t.Skip("this PgBouncer knows no prepared statements: want 1.21 or later")
			}
			url := bouncer.URL + "&default_query_exec_mode=" + mode
			madeDuringTheWait(t, at.Local(), url)
			query(t, at, "DROP SCHEMA soloist CASCADE")
			if strings.HasPrefix(mode, "cache") { // it reads no results as text
				query(t, at, "ALTER DATABASE postgres SET DateStyle = German")
				query(t, at, "ALTER DATABASE postgres SET bytea_output = escape")
			}
			one := patient{open(t, postgres.Config{URL: url})}
			other := patient{open(t, postgres.Config{URL: url + "&pool_max_conns=1"})}
			put, kept := effects(t, at.Local())
			t.Run("suite", func(t *testing.T) {
				storetest.Test(t, storetest.Harness{
					New: func(*testing.T) store.Store { return one },
					Two: func(*testing.T) (store.Store, store.Store) { return one, other },
					Put: put, Kept: kept,
					Differences: takesLess,
				})
			})
			soloistRun(t, one, func(ctx context.Context, run *soloist.Run) error {
				err := postgres.SaveInTx(ctx, run, 7, func(tx pgx.Tx) error { return put(ctx, tx, "saved") })
				if err != nil {
					return err
				}
				return postgres.InTx(ctx, run, func(tx pgx.Tx) error { return put(ctx, tx, "finished") })
			})
			for _, key := range []string{"saved", "finished"} {
				if n, err := kept(t.Context(), key); n != 1 || err != nil {
					t.Errorf("%s: %d effects, %v", key, n, err)
				}
			}
			for _, check := range one.Examine("app", time.Now) {
				if f := check.Do(t.Context()); f.Fails || check.Name == "notifications" && !strings.Contains(f.Text, "no notification arrives") {
					t.Errorf("doctor: %s: %+v", check.Name, f)
				}
			}
		})
	}
}
