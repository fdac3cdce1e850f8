package postgres_test

import (
	"strings"
	"testing"

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
			one, other := open(t, postgres.Config{URL: url}), open(t, postgres.Config{URL: url + "&pool_max_conns=1"})
			put, kept := effects(t, at.Local())
			storetest.Test(t, storetest.Harness{
				New: func(*testing.T) store.Store { return one },
				Two: func(*testing.T) (store.Store, store.Store) { return one, other },
				Put: put, Kept: kept,
			})
			if err := one.Watch(t.Context(), "app", func(string) {}); err == nil || !strings.Contains(err.Error(), "no notification arrives") {
				t.Errorf("got %v, want no notifications", err)
			}
		})
	}
}
