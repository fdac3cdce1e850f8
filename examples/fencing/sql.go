package fencing

import (
	"context"
	"database/sql"
)

// Tables are what the statements below work on, in PostgreSQL and SQLite alike.
const Tables = `
CREATE TABLE IF NOT EXISTS reports (name TEXT PRIMARY KEY, body TEXT NOT NULL, token BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS fence (job TEXT PRIMARY KEY, token BIGINT NOT NULL);
`

// <= and not <: all writes of one run have the same token.
const saveReport = `
INSERT INTO reports (name, body, token) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET body = excluded.body, token = excluded.token
WHERE reports.token <= excluded.token`

const raiseFence = `
INSERT INTO fence (job, token) VALUES ($1, $2)
ON CONFLICT (job) DO UPDATE SET token = excluded.token
WHERE fence.token <= excluded.token`

// An Execer is a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// SaveReport writes one row that bears the token itself. ErrStale: a newer run
// has written it.
//
// It guards that row alone: a stale run can still write rows that the newer
// one has not come to yet. Where that matters, use [Fenced]. Do not delete the
// row, since its token would go with it; empty it.
func SaveReport(ctx context.Context, db Execer, name, body string, token int64) error {
	return accepted(db.ExecContext(ctx, saveReport, name, body, token))
}

// Fenced calls effect in a transaction that is committed only if no newer run
// of the job has written, and that no older run can come in after. ErrStale:
// effect was not called.
//
// The statement that raises the fence is the first of the transaction, so it
// keeps the row locked until the commit: of two runs, one waits for the other.
// A run that hangs in effect holds up its successor. The end of ctx, as a run's
// context has one, ends that by a rollback; for a machine that is cut off, set
// idle_in_transaction_session_timeout and tcp_user_timeout in PostgreSQL.
//
// Under REPEATABLE READ or SERIALIZABLE, a lost race is an error of the
// database (40001) instead of ErrStale; nothing is written then either.
func Fenced(ctx context.Context, db *sql.DB, job string, token int64, effect func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after Commit
	if err := accepted(tx.ExecContext(ctx, raiseFence, job, token)); err != nil {
		return err
	}
	if err := effect(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// accepted recognizes a write whose WHERE was false by its count of rows. MySQL
// counts a row that already had these values as none: set clientFoundRows=true.
func accepted(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if rows == 0 {
		return ErrStale
	}
	return nil
}
