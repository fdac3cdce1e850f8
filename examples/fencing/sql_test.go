package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/examples/fencing"
	"github.com/soloist-go/soloist/internal/postgres"
)

func ExampleSaveReport() {
	db := memory()
	defer db.Close()
	save := func(run *soloist.Run, body string) {
		fmt.Println(fencing.SaveReport(context.Background(), db, "sales", body, run.Token))
	}
	older, newer := &soloist.Run{Token: 7}, &soloist.Run{Token: 8}
	save(older, "draft")
	save(older, "by the first run")
	save(newer, "by the next one")
	save(older, "by the first run, back from a long pause")
	var body string
	if err := db.QueryRow("SELECT body FROM reports WHERE name = 'sales'").Scan(&body); err != nil {
		fmt.Println(err)
	}
	fmt.Println(body)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// stale token: a newer run has written
	// by the next one
}

func ExampleFenced() {
	db := memory()
	defer db.Close()
	do := func(ctx context.Context, run *soloist.Run) error { // of a soloist.Job
		return fencing.Fenced(ctx, db, run.Job, run.Token, func(tx *sql.Tx) error {
			fmt.Println("pay everybody, with token", run.Token)
			return nil
		})
	}
	ctx := context.Background()
	fmt.Println(do(ctx, &soloist.Run{Job: "payroll", Token: 7}))
	fmt.Println(do(ctx, &soloist.Run{Job: "payroll", Token: 8}))
	fmt.Println(do(ctx, &soloist.Run{Job: "payroll", Token: 7}))
	// Output:
	// pay everybody, with token 7
	// <nil>
	// pay everybody, with token 8
	// <nil>
	// stale token: a newer run has written
}

func memory() *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection has a database of its own
	if _, err := db.Exec(fencing.Tables); err != nil {
		panic(err)
	}
	return db
}

// database is where the tests write: the tables, and one that tells the order
// of the effects.
type database struct{ *sql.DB }

func openSQLite(t *testing.T) database {
	// busy_timeout: a writer waits for the other one. WAL: as programs use it.
	name := filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	db, err := sql.Open("sqlite", "file:"+name)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, db, "INTEGER PRIMARY KEY")
}

func openPostgres(t *testing.T) database {
	db, err := sql.Open("postgres", postgres.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, db, "BIGSERIAL PRIMARY KEY")
}

func open(t *testing.T, db *sql.DB, serial string) database {
	t.Helper()
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(8)
	if _, err := db.Exec(fencing.Tables + "CREATE TABLE effects (id " + serial + ", token BIGINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return database{db}
}

// by is the database with one way to write to it.
func (db database) by(write func(database, int64) error) resource {
	return resource{func(token int64) error { return write(db, token) }, db.effects}
}

func effect(tx *sql.Tx, token int64) error {
	_, err := tx.Exec("INSERT INTO effects (token) VALUES ($1)", token)
	return err
}

func (db database) fenced(token int64) error {
	return fencing.Fenced(context.Background(), db.DB, "payroll", token, func(tx *sql.Tx) error {
		return effect(tx, token)
	})
}

// saveReport notes the write in its own transaction, after it: the row is then
// locked, so the notes have the order of the writes.
func (db database) saveReport(token int64) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fencing.SaveReport(context.Background(), tx, "sales", fmt.Sprint("by ", token), token); err != nil {
		return err
	}
	if err := effect(tx, token); err != nil {
		return err
	}
	return tx.Commit()
}

func (db database) effects(t *testing.T) (tokens []int64) {
	t.Helper()
	rows, err := db.Query("SELECT token FROM effects ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestSQLite(t *testing.T)     { testDatabase(t, openSQLite(t)) }
func TestPostgreSQL(t *testing.T) { testDatabase(t, openPostgres(t)) }

func testDatabase(t *testing.T, db database) {
	for name, write := range map[string]func(database, int64) error{"Fenced": database.fenced, "SaveReport": database.saveReport} {
		t.Run(name, func(t *testing.T) {
			if _, err := db.Exec("DELETE FROM effects"); err != nil {
				t.Fatal(err)
			}
			checkRace(t, 50, db.by(write))
		})
	}
	t.Run("effect fails", func(t *testing.T) { testRollback(t, db) })
	t.Run("two jobs", func(t *testing.T) { testTwoJobs(t, db) })
}

// A transaction that fails leaves neither effect nor token.
func testRollback(t *testing.T, db database) {
	ctx, broken := context.Background(), errors.New("broken")
	before := len(db.effects(t))
	err := fencing.Fenced(ctx, db.DB, "rollback", 2, func(tx *sql.Tx) error {
		return errors.Join(effect(tx, 2), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the effect", err)
	}
	if n := len(db.effects(t)) - before; n != 0 {
		t.Errorf("%d effects after a rollback", n)
	}
	if err := fencing.Fenced(ctx, db.DB, "rollback", 1, func(*sql.Tx) error { return nil }); err != nil {
		t.Errorf("the token of a rollback counts: %v", err)
	}
}

// The tokens of one job say nothing about those of another.
func testTwoJobs(t *testing.T, db database) {
	nothing := func(*sql.Tx) error { return nil }
	for _, run := range []soloist.Run{{Job: "a", Token: 9}, {Job: "b", Token: 1}, {Job: "a", Token: 9}} {
		if err := fencing.Fenced(context.Background(), db.DB, run.Job, run.Token, nothing); err != nil {
			t.Errorf("%s, token %d: %v", run.Job, run.Token, err)
		}
	}
}
