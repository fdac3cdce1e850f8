package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/store"
)

// A ground is a store with one connection, an entry that is leased, and a table of the user's.
type ground struct {
	testing.TB
	s     *postgres.Store
	watch *pgx.Conn
	etag  string

	checkpoint []byte // what is written with the record; nil: none
}

func newGround(t testing.TB, url string, c postgres.Config) *ground {
	g := &ground{TB: t, s: open(t, c), watch: session(t, url)}
	run(t, g.watch, "DROP SCHEMA IF EXISTS soloist CASCADE")
	run(t, g.watch, "DROP TABLE IF EXISTS effects")
	run(t, g.watch, "CREATE TABLE effects (key text UNIQUE DEFERRABLE INITIALLY DEFERRED)")
	e, err := g.s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	must(t, acquire(g.s, e, ours, time.Minute))
	g.etag = e.ETag
	return g
}

// transact puts an effect, calls f, and writes.
func (g *ground) transact(ctx context.Context, f func(tx pgx.Tx)) (store.Revision, error) {
	return g.s.Lease(e1, ours).(store.Transactor).Transact(ctx, func(tx any, write store.TransactionWrite) error {
		if _, err := tx.(pgx.Tx).Exec(ctx, "INSERT INTO effects VALUES ('x')"); err != nil {
			return err
		}
		f(tx.(pgx.Tx))
		return write(ctx, g.etag, []byte("second"), g.checkpoint)
	})
}

// want checks how many effects there are and which record, and that the only connection of the store is as new.
func (g *ground) want(effects, record string) {
	g.Helper()
	e, err := g.s.Read(context.Background(), e1)
	must(g, err)
	if n := run(g, g.watch, "SELECT count(*)::text FROM effects"); n != effects || string(e.Record) != record {
		g.Errorf("got %s effects and record %s, want %s and %s", n, e.Record, effects, record)
	}
	n := ""
	for range 1000 { // the server may not have seen yet that a connection was closed
		if n = run(g, g.watch, "SELECT count(*)::text FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database()"); n == "0" {
			return
		}
		run(g, g.watch, "SELECT pg_sleep(0.01)::text")
	}
	g.Errorf("%s sessions are in a transaction", n)
}

func do(t testing.TB, tx pgx.Tx, sql string) {
	t.Helper()
	_, err := tx.Exec(context.Background(), sql)
	must(t, err)
}

// What the function of a transaction may do, and what it may not: then nothing of ours is written.
func TestTransactionOfTheUser(t *testing.T) {
	url := start(t)
	t.Run("function", func(t *testing.T) {
		for name, test := range map[string]struct {
			f                    func(t *testing.T, tx pgx.Tx)
			says, effects, after string // the error, none: it is kept
		}{
			"it does no more": {func(*testing.T, pgx.Tx) {}, "", "1", "second"},
			"it sets savepoints": {func(t *testing.T, tx pgx.Tx) {
				do(t, tx, "SAVEPOINT one; DELETE FROM effects; ROLLBACK TO one; SAVEPOINT two; RELEASE two")
				nested, err := tx.Begin(t.Context())
				must(t, err)
				must(t, nested.Rollback(t.Context()))
			}, "", "1", "second"},
			"it commits":                   {func(t *testing.T, tx pgx.Tx) { must(t, tx.Commit(t.Context())) }, "ended the transaction itself", "1", "first"},
			"it rolls back":                {func(t *testing.T, tx pgx.Tx) { must(t, tx.Rollback(t.Context())) }, "ended the transaction itself", "0", "first"},
			"it commits by a statement":    {func(t *testing.T, tx pgx.Tx) { do(t, tx, "COMMIT") }, "ended the transaction itself", "1", "first"},
			"it rolls back by a statement": {func(t *testing.T, tx pgx.Tx) { do(t, tx, "ROLLBACK") }, "ended the transaction itself", "0", "first"},
			"it begins another":            {func(t *testing.T, tx pgx.Tx) { do(t, tx, "COMMIT; BEGIN") }, "ended the transaction itself", "1", "first"},
			"it chains another":            {func(t *testing.T, tx pgx.Tx) { do(t, tx, "ROLLBACK AND CHAIN") }, "ended the transaction itself", "0", "first"},
			"it ignores a failed statement": {func(t *testing.T, tx pgx.Tx) {
				_, err := tx.Exec(t.Context(), "SELECT 1/0")
				if err == nil {
					t.Error("no error")
				}
			}, "an earlier statement of the transaction has failed", "0", "first"},
			"it leaves rows unread": {func(t *testing.T, tx pgx.Tx) {
				_, err := tx.Query(t.Context(), "SELECT 1") //nolint:sqlclosecheck // that is the mistake
				must(t, err)
			}, "busy", "0", "first"},
			"it breaks a constraint that is checked at COMMIT": {func(t *testing.T, tx pgx.Tx) { do(t, tx, "INSERT INTO effects VALUES ('x')") }, "23505", "0", "first"},
		} {
			for with, checkpoint := range map[string][]byte{"outcome": nil, "checkpoint": []byte("third")} {
				t.Run(name+", and "+with, func(t *testing.T) {
					g := newGround(t, url, postgres.Config{URL: url + " pool_max_conns=1"})
					g.checkpoint = checkpoint
					r, err := g.transact(t.Context(), func(tx pgx.Tx) { test.f(t, tx) })
					if test.says == "" && (err != nil || r.ETag == g.etag) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || r.ETag != "") {
						t.Errorf("got %+v, error %v, want %q", r, err, test.says)
					}
					g.want(test.effects, test.after)
				})
			}
		}
	})
	t.Run("panic", func(t *testing.T) {
		g := newGround(t, url, postgres.Config{URL: url + " pool_max_conns=1"})
		func() {
			defer func() {
				if recover() != "own" {
					t.Error("the panic is another")
				}
			}()
			g.transact(t.Context(), func(pgx.Tx) { panic("own") })
		}()
		g.want("0", "first")
	})
}

// A transaction has the isolation that the statement needs, and the user's statements no limit but the user's own.
func TestTransactionSettings(t *testing.T) {
	url := start(t)
	pool, err := pgxpool.New(t.Context(), url+" statement_timeout=7s")
	must(t, err)
	defer pool.Close()
	for name, test := range map[string]struct {
		c     postgres.Config
		limit string
	}{
		"ours":            {postgres.Config{URL: url}, "0"},
		"of a URL":        {postgres.Config{URL: url + " statement_timeout=6s"}, "6s"},
		"of a given pool": {postgres.Config{Pool: pool}, "7s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t, url, test.c)
			alter := "ALTER DATABASE " + run(t, g.watch, "SELECT quote_ident(current_database())")
			_, err := g.watch.Exec(t.Context(), alter+" SET default_transaction_isolation = serializable")
			must(t, err)
			defer g.watch.Exec(context.Background(), alter+" RESET ALL") //nolint:errcheck // the next case would fail
			g.s.Reset()                                                  // sessions from now on have it, where they do not name another
			_, err = g.transact(t.Context(), func(tx pgx.Tx) {
				if got := run(t, tx, "SHOW statement_timeout"); got != test.limit {
					t.Errorf("a statement may take %s, want %s", got, test.limit)
				}
				if got := run(t, tx, "SHOW transaction_isolation"); got != "read committed" {
					t.Errorf("the isolation is %s", got)
				}
			})
			must(t, err)
			g.want("1", "second")
		})
	}
}

var errTrouble = errors.New("trouble on the way")

// A cut connection does something when a text is sent: an error of that is the answer, else there is none.
type cut struct {
	net.Conn
	text string
	on   *atomic.Bool
	meet func() error
	lost atomic.Bool
}

func (c *cut) Write(b []byte) (int, error) {
	if c.on.Load() && bytes.Contains(b, []byte(c.text)) {
		if err := c.meet(); err != nil {
			return 0, errors.Join(err, c.Close())
		}
		c.lost.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cut) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lost.Load() { // the server has answered
		return 0, errors.Join(err, errTrouble, c.Close())
	}
	return n, err
}

// cutPool has connections that are cut at COMMIT while on is true.
func cutPool(t *testing.T, url string, on *atomic.Bool, meet func() error) *pgxpool.Pool {
	c, err := pgxpool.ParseConfig(url)
	must(t, err)
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &cut{Conn: conn, text: "commit", on: on, meet: meet}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// A COMMIT that is not answered is an error of unclear outcome.
func TestCommitWithoutAnswer(t *testing.T) {
	url := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, test := range map[string]struct {
		meet            func() error
		effects, record string // empty: either
	}{
		"it was applied":  {func() error { return nil }, "1", "second"},
		"it was not":      {func() error { return errTrouble }, "0", "first"},
		"it was given up": {func() error { cancel(); return nil }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var on atomic.Bool
			g := newGround(t, url, postgres.Config{Pool: cutPool(t, url+" pool_max_conns=1", &on, test.meet)})
			own := t.Context()
			if test.record == "" {
				own = ctx
			}
			r, err := g.transact(own, func(pgx.Tx) { on.Store(true) })
			on.Store(false)
			if err == nil || r.ETag != "" || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrChanged) || !strings.HasPrefix(err.Error(), "postgres: commit app/job: ") {
				t.Errorf("got %+v, error %v, want an unclear one", r, err)
			}
			until(t, g.watch, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() AND datname = current_database())")
			if test.record == "" {
				test.effects, test.record = run(t, g.watch, "SELECT count(*)::text FROM effects"), "first"
				if test.effects == "1" {
					test.record = "second"
				}
			}
			g.want(test.effects, test.record)
		})
	}
}

// A process that stops between the write and COMMIT keeps the row from others for five seconds at most.
func TestStoppedBeforeCommit(t *testing.T) {
	url := start(t)
	g := newGround(t, url, postgres.Config{URL: url + " pool_max_conns=1"})
	_, err := g.s.Lease(e1, ours).(store.Transactor).Transact(t.Context(), func(tx any, write store.TransactionWrite) error {
		if got := run(t, tx.(pgx.Tx), "SHOW idle_in_transaction_session_timeout"); got != "0" {
			t.Errorf("before the write it may be idle for %s", got)
		}
		err := write(t.Context(), g.etag, []byte("second"), nil)
		if got := run(t, tx.(pgx.Tx), "SHOW idle_in_transaction_session_timeout"); got != "5s" {
			t.Errorf("after the write it may be idle for %s", got)
		}
		return err
	})
	must(t, err)
}

// Of the connections of a pool one is left for renewals, however many transactions are open.
func TestTransactionsLeaveAConnection(t *testing.T) {
	url := start(t)
	g := newGround(t, url, postgres.Config{URL: url + " pool_max_conns=3"})
	for _, name := range []string{"app/two", "app/three"} {
		_, err := g.s.Create(t.Context(), name, []byte("first"))
		must(t, err)
	}
	var inside atomic.Int32
	end := make(chan struct{})
	answers := make(chan error)
	for _, name := range []string{e1, "app/two", "app/three"} {
		go func() {
			_, err := g.s.Lease(name, ours).(store.Transactor).Transact(t.Context(), func(any, store.TransactionWrite) error {
				inside.Add(1)
				<-end
				return errTrouble
			})
			answers <- err
		}()
	}
	until(t, g.watch, "(SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()) = 2")
	_, err := g.s.Lease(e1, ours).Renew(t.Context())
	must(t, err)
	if n := inside.Load(); n != 2 {
		t.Errorf("%d transactions are open", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.s.Lease(e1, ours).(store.Transactor).Transact(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v of a call that is given up", err)
	}
	close(end)
	for range 3 {
		if err := <-answers; err != errTrouble {
			t.Error(err)
		}
	}
}

// So it is for the stores of two apps on one pool.
func TestStoresOfOnePoolLeaveAConnection(t *testing.T) {
	url := start(t)
	pool, err := pgxpool.New(t.Context(), url+" pool_max_conns=2")
	must(t, err)
	defer pool.Close()
	g := newGround(t, url, postgres.Config{Pool: pool})
	other := open(t, postgres.Config{Pool: pool, Prefix: "other_"})
	transact := func(ctx context.Context, s *postgres.Store, f func() error) error {
		_, err := s.Lease(e1, ours).(store.Transactor).Transact(ctx, func(any, store.TransactionWrite) error { return f() })
		return err
	}
	_, err = other.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	err = transact(t.Context(), g.s, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := transact(ctx, other, func() error { return errTrouble }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v of a transaction that leaves no connection", err)
		}
		_, err := g.s.Lease(e1, ours).Renew(t.Context())
		must(t, err)
		return errTrouble
	})
	if err != errTrouble {
		t.Error(err)
	}
	if err := transact(t.Context(), other, func() error { return errTrouble }); err != errTrouble {
		t.Error(err)
	}
}

// InTx and SaveInTx are those of the run, with the type of this package; a run of another store gets an error.
func TestInTx(t *testing.T) {
	url := start(t)
	s, watch := open(t, postgres.Config{URL: url}), session(t, url)
	run(t, watch, "CREATE TABLE effects (key text)")
	insert := func(key string) func(tx pgx.Tx) error {
		return func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO effects VALUES ($1)", key)
			return err
		}
	}
	soloistRun(t, s, func(ctx context.Context, run *soloist.Run) error {
		must(t, postgres.SaveInTx(ctx, run, 7, insert("saved")))
		var n int
		must(t, run.Load(ctx, &n))
		if n != 7 {
			t.Errorf("the checkpoint is %d", n)
		}
		if err := postgres.InTx(ctx, run, func(tx pgx.Tx) error { _ = insert("failed")(tx); return errTrouble }); err != errTrouble {
			t.Errorf("got %v, want the error of the function", err)
		}
		must(t, postgres.InTx(ctx, run, insert("finished")))
		return errors.New("too late")
	})
	if got := run(t, watch, "SELECT string_agg(key, ' ' ORDER BY key) FROM effects"); got != "finished saved" {
		t.Errorf("kept %s", got)
	}
	soloistRun(t, new(local.Memory), func(ctx context.Context, run *soloist.Run) error {
		for _, err := range []error{postgres.InTx(ctx, run, insert("none")), postgres.SaveInTx(ctx, run, 7, insert("none"))} {
			if err == nil || !strings.Contains(err.Error(), "the store has no transactions") {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
	soloistRun(t, another{s}, func(ctx context.Context, run *soloist.Run) error {
		for _, err := range []error{postgres.InTx(ctx, run, insert("none")), postgres.SaveInTx(ctx, run, 7, insert("none"))} {
			if err == nil || !strings.Contains(err.Error(), "transactions of its own, string: want a store of this package") {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
}

// A run whose COMMIT is not answered is told what became of it.
func TestInTxWithoutAnswer(t *testing.T) {
	url := start(t)
	watch := session(t, url)
	run(t, watch, "CREATE TABLE effects (key text)")
	for name, test := range map[string]struct {
		meet          func() error
		says, effects string // no error: it was committed
	}{
		"applied":     {func() error { return nil }, "", "1"},
		"not applied": {func() error { return errTrouble }, "the transaction was not committed: postgres: commit app/job: ", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, watch, "DROP SCHEMA IF EXISTS soloist CASCADE")
			run(t, watch, "TRUNCATE effects")
			var on atomic.Bool
			s := open(t, postgres.Config{Pool: cutPool(t, url, &on, func() error { on.Store(false); return test.meet() })})
			soloistRun(t, s, func(ctx context.Context, run *soloist.Run) error {
				err := postgres.InTx(ctx, run, func(tx pgx.Tx) error {
					on.Store(true)
					_, err := tx.Exec(ctx, "INSERT INTO effects VALUES ('x')")
					return err
				})
				if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.HasPrefix(err.Error(), test.says)) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				return err
			})
			if got := run(t, watch, "SELECT count(*)::text FROM effects"); got != test.effects {
				t.Errorf("%s effects, want %s", got, test.effects)
			}
		})
	}
}

// soloistRun has a job run once.
func soloistRun(t *testing.T, s store.Store, do func(context.Context, *soloist.Run) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ran := false
	sched := &soloist.Scheduler{Store: s, App: "app", Logger: slog.New(slog.DiscardHandler), Jobs: []soloist.Job{{
		Name: "job", Schedule: "@every 1s", Lease: 15 * time.Second, Do: func(ctx context.Context, run *soloist.Run) error {
			defer cancel()
			if ran {
				return nil
			}
			ran = true
			return do(ctx, run)
		}}}}
	_ = sched.Run(ctx)
	if !ran {
		t.Error("nothing ran")
	}
}

// another store has transactions of another type.
type another struct{ *postgres.Store }

func (s another) Lease(name, id string) store.Lease {
	l := s.Store.Lease(name, id)
	return struct {
		store.Lease
		anotherTransactor
	}{l, anotherTransactor{l.(store.Transactor)}}
}

type anotherTransactor struct{ store.Transactor }

func (l anotherTransactor) Transact(ctx context.Context, f func(any, store.TransactionWrite) error) (store.Revision, error) {
	return l.Transactor.Transact(ctx, func(_ any, write store.TransactionWrite) error { return f("tx", write) })
}
