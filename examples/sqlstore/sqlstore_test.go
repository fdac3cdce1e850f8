package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/soloist-go/soloist/examples/sqlstore"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

func TestSQLite(t *testing.T) {
	storetest.Test(t, storetest.Harness{New: openSQLite, Virtual: true})
}

func openSQLite(t *testing.T) store.Store {
	// busy_timeout: a writer waits for the other one. WAL: as programs use it.
	name := filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	return &sqlstore.Store{DB: open(t, "file:"+name)}
}

func open(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", name)
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
