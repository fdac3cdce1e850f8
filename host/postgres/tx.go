package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// InTx writes that the run has succeeded, in one transaction with what f does in it: both are kept, or neither. So the
// effect of f is kept exactly once for each tick that has succeeded, and for no other. Conditions:
//
//   - The store of the run is one of this package, and the effect is in its database, made by statements of tx.
//   - It is the last thing that a run does, and Do returns its error. After nil the tick has succeeded, whatever Do returns;
//     a Do that ignores an error and returns nil has a tick that succeeded without the effect.
//   - It is the run of a tick: a singleton, a lock, a job of EveryReplica and a run of a backfill have no such outcome.
//
// f may take as long as the run. Its statements have no time limit but the context and what the URL or the pool says:
// the store's own limit of five seconds (statement_timeout) is not for them. The isolation is READ COMMITTED. f may set
// savepoints, and must not commit or roll back: then InTx returns an error and the outcome is not written, and what f has
// committed stays. Settings are for SET LOCAL: those of SET stay in the session, which goes back to the pool.
//
// The last statement locks the row of the job, and judges the lease by the server's clock. A run that has lost its lease
// gets an error that wraps [soloist.ErrLost], and nothing is kept, whatever its own clock says. If f fails, nothing is
// kept, and InTx returns the error as it is. If the answer to COMMIT is lost, the store is asked what became of it: nil says
// that it was committed, an error that it was not, unless the store could not be asked in time, or another replica has
// written since. Then both may have been kept.
//
// A transaction takes a connection. At most one less than the pool has are open at a time, so that renewals have one; with
// a pool of one connection f has to be shorter than a third of the lease.
func InTx(ctx context.Context, run *soloist.Run, f func(tx pgx.Tx) error) error {
	return run.FinishIn(ctx, typed(f))
}

// SaveInTx is [soloist.Run.Save] in one transaction with what f does in it, as InTx: the effect of f and the checkpoint
// that says how far the run is are both kept, or neither. The run goes on, and may call it again. A singleton may call it.
func SaveInTx(ctx context.Context, run *soloist.Run, v any, f func(tx pgx.Tx) error) error {
	return run.SaveIn(ctx, v, typed(f))
}

func typed(f func(tx pgx.Tx) error) func(tx any) error {
	return func(tx any) error {
		if tx, ok := tx.(pgx.Tx); ok {
			return f(tx)
		}
		return fmt.Errorf("postgres: the store of the run has transactions of its own, %T: want a store of this package", tx)
	}
}

// Why a transaction is not committed although f has not failed.
var (
	errEnded   = errors.New("the function has ended the transaction itself, and nothing of the run was written")
	errUnasked = errors.New("the record was not written, so nothing is committed")
)

// How a transaction begins, whatever the session's defaults are. The setting is gone when the transaction has ended, however
// that was, also if another one has begun; the write looks for it. unlimited lifts the limit that is meant for our statements.
const (
	begin     = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL soloist.transaction = '%s'"
	unlimited = "; SET LOCAL statement_timeout = 0"
)

// rooms are those of pools that are in use, by weak pointers.
var rooms sync.Map

// roomOf is for the transactions of all stores of a pool: those of one must leave a connection to the others, too.
func roomOf(pool *pgxpool.Pool) chan struct{} {
	key := weak.Make(pool)
	room, there := rooms.LoadOrStore(key, make(chan struct{}, max(1, pool.Config().MaxConns-1)))
	if !there {
		runtime.AddCleanup(pool, rooms.Delete, any(key))
	}
	return room.(chan struct{})
}

// Transact implements [store.Transactor].
func (l *lease) Transact(ctx context.Context, f func(tx any, write store.TransactionWrite) error) (store.Revision, error) {
	s := l.store
	if err := s.prepare(ctx, transact, l.name); err != nil {
		return store.Revision{}, err
	}
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-ctx.Done():
		return store.Revision{}, s.translate(transact, l.name, ctx.Err())
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return store.Revision{}, s.translate(transact, l.name, err)
	}
	defer conn.Release() // it closes a connection that is still in a transaction
	t := &transaction{lease: l, nonce: rand.Text(), err: refuse(transact, l.name, errUnasked)}
	if t.tx, err = conn.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: fmt.Sprintf(s.begin, t.nonce)}); err != nil {
		return store.Revision{}, s.translate(transact, l.name, err)
	}
	defer t.rollback(context.WithoutCancel(ctx)) // also if f panics
	if err := f(t.tx, t.write); err != nil {
		return store.Revision{}, err
	}
	if t.err != nil { // f may have ignored it
		return store.Revision{}, t.err
	}
	return t.commit(ctx)
}

// A transaction is one call of Transact.
type transaction struct {
	lease *lease
	tx    pgx.Tx
	nonce string

	written store.Revision
	err     error // why it must not be committed
}

func (t *transaction) write(ctx context.Context, etag string, record, checkpoint []byte) error {
	l, sql, args := t.lease, t.lease.store.sql.writeIn, []any{t.lease.id, etag, string(record), t.nonce}
	if checkpoint != nil {
		sql, args = l.store.sql.saveIn, append(args, checkpoint)
	}
	if t.err = checkSaved(transact, l.name, record, checkpoint); t.err == nil {
		t.written, t.err = l.store.changeBy(ctx, t.tx, &ask{op: transact, name: l.name, statement: sql, args: args})
	}
	return t.err
}

// commit takes no longer than a statement of ours. After an error it is not known whether it was committed.
func (t *transaction) commit(ctx context.Context) (store.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	if err := t.tx.Commit(ctx); err != nil {
		return store.Revision{}, t.lease.store.translate(commit, t.lease.name, err)
	}
	return t.written, nil
}

// rollback does nothing after COMMIT.
func (t *transaction) rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_ = t.tx.Rollback(ctx) // otherwise pgx closes the connection, and the server rolls back
}
