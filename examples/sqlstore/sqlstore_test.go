package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/soloist-go/soloist/examples/sqlstore"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/store"
)

func TestSQLite(t *testing.T) {
	storetest.Test(t, storetest.Harness{New: openSQLite, Virtual: true})
}

func TestPostgreSQL(t *testing.T) {
	db := open(t, "postgres", postgres.Start(t))
	backend := &sqlstore.Store{DB: db, Clock: sqlstore.PostgresClock}
	storetest.Test(t, storetest.Harness{New: func(*testing.T) store.Store { return backend }})
}

func openSQLite(t *testing.T) store.Store {
	// busy_timeout: a writer waits for the other one. WAL: as programs use it.
	name := filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	return &sqlstore.Store{DB: open(t, "sqlite", "file:"+name)}
}

func open(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(8)
	for _, table := range []string{sqlstore.Table, sqlstore.LogTable} {
		if _, err := db.ExecContext(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	return db
}
