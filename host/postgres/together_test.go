package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/store"
)

// A crowd makes calls that all wait for the one connection of a store.
type crowd struct {
	*testing.T
	*postgres.Store
	pool                     *pgxpool.Pool
	statements, acquisitions atomic.Int64

	dies   atomic.Bool // the next connection of a call that is not alone
	etags  []string
	schema string
}

// TraceQueryStart implements [pgx.QueryTracer].
func (c *crowd) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (*crowd) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceAcquireStart implements [pgxpool.AcquireTracer].
func (c *crowd) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	c.acquisitions.Add(1)
	return ctx
}

// TraceAcquireEnd implements [pgxpool.AcquireTracer].
func (*crowd) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

// newCrowd returns one with n entries that nobody holds.
func newCrowd(t *testing.T, url string, n int) *crowd {
	t.Helper()
	c := &crowd{T: t}
	settings, err := pgxpool.ParseConfig(url + " pool_max_conns=1")
	must(t, err)
	settings.ConnConfig.Tracer = c
	settings.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		if c.dies.Load() && c.Inside() > 1 {
			c.dies.Store(false)
			must(t, conn.PgConn().Conn().Close())
		}
		return true, nil
	}
	c.pool, err = pgxpool.NewWithConfig(t.Context(), settings)
	must(t, err)
	t.Cleanup(c.pool.Close)
	t.Cleanup(func() {
		for c.pool.Stat().AcquiredConns() > 0 || c.Inside() > 0 { // nothing is left behind
			runtime.Gosched()
		}
	})
	c.schema = strings.NewReplacer("/", "_", " ", "_").Replace(strings.ToLower(t.Name())) // the tests may share a database
	c.Store = open(t, postgres.Config{Pool: c.pool, Schema: c.schema})
	for i := range n {
		e, err := c.Create(t.Context(), entryOf(i), []byte("new"))
		must(t, err)
		c.etags = append(c.etags, e.ETag)
	}
	return c
}

func entryOf(i int) string { return fmt.Sprintf("crowd/job-%d", i) }

// idOf is an id for a lease.
func idOf(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// combiner is the lease of an entry under an id that is its own.
func (c *crowd) combiner(i int) store.Combiner { return c.Lease(entryOf(i), idOf(i)).(store.Combiner) }

// take claims an entry.
func (c *crowd) take(ctx context.Context, i int, record string) error {
	r, err := c.combiner(i).AcquireWrite(ctx, time.Minute, c.etags[i], []byte(record))
	if err == nil {
		c.etags[i] = r.ETag
	}
	return err
}

// meet makes calls, of which the first is the first to wait, and returns their answers as they come.
func (c *crowd) meet(calls ...func() error) []<-chan error {
	c.Helper()
	conn, err := c.pool.Acquire(c.Context())
	must(c, err)
	defer conn.Release()
	c.statements.Store(0)
	return c.queue(calls...)
}

// queue starts calls one after the other, when there is no connection.
func (c *crowd) queue(calls ...func() error) []<-chan error {
	answers := make([]<-chan error, len(calls))
	for i, call := range calls {
		answer := make(chan error, 1)
		answers[i] = answer
		go func() { answer <- call() }()
		for c.Inside() <= i {
			runtime.Gosched()
		}
	}
	return answers
}

// made reports whether the calls needed so many statements.
func (c *crowd) made(want int64) {
	c.Helper()
	if got := c.statements.Load(); got != want {
		c.Errorf("%d statements, want %d", got, want)
	}
}

// holds checks an entry.
func (c *crowd) holds(i int, record string, state store.LeaseState) {
	c.Helper()
	e, err := c.Read(c.Context(), entryOf(i))
	must(c, err)
	if string(e.Record) != record || e.State != state || c.etags[i] != e.ETag {
		c.Errorf("entry %d: %q, %s, ETag %s, want %q, %s, ETag %s", i, e.Record, e.State, e.ETag, record, state, c.etags[i])
	}
}

// Calls that wait for a connection share statements, and each gets its own answer.
func TestTogether(t *testing.T) {
	const n = 250
	c, ctx := newCrowd(t, start(t), n), t.Context()
	const free, held, changed, missing = 0, 1, 2, 3
	for i := range n {
		switch i % 4 {
		case held:
			_, err := c.Lease(entryOf(i), ours).Acquire(ctx, time.Minute, c.etags[i])
			must(t, err)
		case changed:
			must(t, c.take(ctx, i, "changed"))
			must(t, c.Lease(entryOf(i), idOf(i)).Release(ctx))
		case missing:
			must(t, c.Remove(ctx, entryOf(i), c.etags[i]))
		}
	}
	all := func(call func(i int) error) (errs []error) {
		calls := make([]func() error, n)
		for i := range n {
			calls[i] = func() error { return call(i) }
		}
		for _, answer := range c.meet(calls...) {
			errs = append(errs, <-answer)
		}
		return errs
	}
	old := slices.Clone(c.etags)
	for i, err := range all(func(i int) error {
		r, err := c.combiner(i).AcquireWrite(ctx, time.Minute, map[bool]string{true: idOf(0), false: old[i]}[i%4 == changed], []byte(fmt.Sprint("claim ", i)))
		if err == nil {
			c.etags[i] = r.ETag
		}
		return err
	}) {
		if want := []error{nil, store.ErrHeld, store.ErrChanged, fs.ErrNotExist}[i%4]; !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
		switch i % 4 {
		case free:
			c.holds(i, fmt.Sprint("claim ", i), store.Leased)
		case held:
			c.holds(i, "new", store.Leased)
		case changed:
			c.holds(i, "changed", store.Available)
		}
	}
	// 200 share the first, the rest the second; what is missing is asked for again.
	if got := c.statements.Load(); got != 2+n/4+(n-n/4) { // and the reads of this test
		t.Errorf("%d statements", got)
	}
	for call, f := range map[string]func(store.Lease, int) error{
		"renew": func(l store.Lease, _ int) error { _, err := l.Renew(ctx); return err },
		"write": func(l store.Lease, i int) error {
			r, err := l.Write(ctx, c.etags[i], []byte(fmt.Sprint("write ", i)))
			if err == nil {
				c.etags[i] = r.ETag
			}
			return err
		},
	} {
		for i, err := range all(func(i int) error { return f(c.Lease(entryOf(i), idOf(i)), i) }) {
			if want := []error{nil, store.ErrLost, store.ErrLost, fs.ErrNotExist}[i%4]; !errors.Is(err, want) {
				t.Errorf("%s %d: %v, want %v", call, i, err, want)
			}
		}
	}
	for i, err := range all(func(i int) error {
		r, err := c.combiner(i).WriteRelease(ctx, c.etags[i], []byte(fmt.Sprint("end ", i)))
		if err == nil {
			c.etags[i] = r.ETag
		}
		return err
	}) {
		if want := []error{nil, store.ErrLost, store.ErrLost, fs.ErrNotExist}[i%4]; !errors.Is(err, want) {
			t.Errorf("write and release %d: %v, want %v", i, err, want)
		}
		if i%4 == free {
			c.holds(i, fmt.Sprint("end ", i), store.Available)
		}
	}
}

// Of calls for one entry that wait at the same time, one acquires it.
func TestTogetherForOneEntry(t *testing.T) {
	c := newCrowd(t, start(t), 2)
	call := func(i int) func() error {
		return func() error {
			_, err := c.Lease(entryOf(0), idOf(i)).(store.Combiner).AcquireWrite(t.Context(), time.Minute, c.etags[0], []byte(idOf(i)))
			return err
		}
	}
	conn, err := c.pool.Acquire(t.Context())
	must(t, err)
	c.statements.Store(0)
	c.acquisitions.Store(0)
	answers := c.queue(call(0), func() error { return c.take(t.Context(), 1, "other") })
	for i := range 2 { // they wait for a connection of their own
		answer := make(chan error, 1)
		answers = append(answers, answer)
		go func() { answer <- call(2 + i)() }()
	}
	for c.acquisitions.Load() < 3 && c.Inside() < 4 {
		runtime.Gosched()
	}
	conn.Release()
	winner := ""
	for i, answer := range answers {
		switch err := <-answer; {
		case i == 1:
			must(t, err)
		case err == nil && winner == "":
			winner = idOf(i)
		case !errors.Is(err, store.ErrHeld) && !errors.Is(err, store.ErrChanged):
			t.Errorf("call %d: %v", i, err)
		}
	}
	c.made(3)
	if e, err := c.Read(t.Context(), entryOf(0)); err != nil || string(e.Record) != winner {
		t.Errorf("%q, %v, want what the winner has written, %s", e.Record, err, winner)
	}
}

// A row that another session has locked keeps none waiting but those who ask for it.
func TestTogetherBesideALockedRow(t *testing.T) {
	url := start(t)
	c, other := newCrowd(t, url, 10), session(t, url)
	run(t, other, "BEGIN")
	run(t, other, "SELECT name FROM "+c.schema+".entry WHERE name = $1 FOR UPDATE", entryOf(3))
	var calls []func() error
	for i := range 10 {
		calls = append(calls, func() error { return c.take(t.Context(), i, "x") })
	}
	answers := c.meet(calls...)
	for i, answer := range answers {
		if i != 3 {
			must(t, <-answer)
		}
	}
	waits(t, session(t, url), answers[3])
	c.made(2)
	run(t, other, "COMMIT")
	must(t, <-answers[3])
	c.holds(3, "x", store.Leased)
}

// blocked returns once a statement of the crowd, which its connection knows already, waits for the table, which another session
// has locked.
func (c *crowd) blocked(url string, calls ...func() error) (answers []<-chan error, other *pgx.Conn) {
	c.Helper()
	stale := func(i int) func() error {
		return func() error {
			_, err := c.combiner(i).AcquireWrite(c.Context(), time.Minute, idOf(i), []byte("stale"))
			return err
		}
	}
	for _, answer := range c.meet(stale(0), stale(1)) {
		if err := <-answer; !errors.Is(err, store.ErrChanged) {
			c.Fatal(err)
		}
	}
	other = session(c, url)
	run(c, other, "BEGIN")
	run(c, other, "LOCK TABLE "+c.schema+".entry IN ACCESS EXCLUSIVE MODE")
	answers = c.meet(calls...)
	waits(c.T, session(c, url), answers[0])
	return answers, other
}

// A caller that gives up ends its own call, and does not say more of it than it knows.
func TestTogetherWithOneThatGivesUp(t *testing.T) {
	url := start(t)
	c := newCrowd(t, url, 2)
	ctx, giveUp := context.WithCancelCause(t.Context())
	answers, other := c.blocked(url, func() error { return c.take(ctx, 0, "x") }, func() error { return c.take(t.Context(), 1, "x") })
	giveUp(&pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42501", Message: "of another call"})
	if err := <-answers[0]; !errors.Is(err, context.Canceled) || errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want that the call has ended", err)
	}
	run(t, other, "COMMIT")
	must(t, <-answers[1])
	c.holds(1, "x", store.Leased)
	c.made(2) // with the read
	if e, err := c.Read(t.Context(), entryOf(0)); err != nil || e.State != store.Leased {
		t.Errorf("%s, %v: the call of a caller that has given up arrives all the same", e.State, err)
	}
}

// Calls that give up before there is a connection are not sent.
func TestTogetherBeforeAConnection(t *testing.T) {
	c := newCrowd(t, start(t), 3)
	ctx, giveUp := context.WithCancel(t.Context())
	conn, err := c.pool.Acquire(t.Context())
	must(t, err)
	answers := c.queue(func() error { return c.take(ctx, 0, "x") }, func() error { return c.take(ctx, 1, "x") },
		func() error { return c.take(t.Context(), 2, "x") })
	giveUp()
	for _, answer := range answers[:2] {
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the call has ended", err)
		}
	}
	c.statements.Store(0)
	conn.Release()
	must(t, <-answers[2])
	c.made(1)
	c.holds(0, "new", store.Available)
	c.holds(1, "new", store.Available)
	c.holds(2, "x", store.Leased)
}

// The statement ends when all of its callers have given up, and frees its connection.
func TestTogetherEnds(t *testing.T) {
	url := start(t)
	c := newCrowd(t, url, 2)
	ctx, giveUp := context.WithCancel(t.Context())
	answers, other := c.blocked(url, func() error { return c.take(ctx, 0, "x") }, func() error { return c.take(ctx, 1, "x") })
	giveUp()
	for _, answer := range answers {
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the call has ended", err)
		}
	}
	_, err := c.pool.Exec(t.Context(), "SELECT 1") // there is a connection while the table is still locked
	must(t, err)
	run(t, other, "COMMIT")
}

// A statement is planned for any number of calls, and not anew for each: that takes longer than the call.
func TestPlannedOnce(t *testing.T) {
	c := newCrowd(t, start(t), 1)
	must(t, c.take(t.Context(), 0, "x"))
	for range 20 {
		_, err := c.Lease(entryOf(0), idOf(0)).Renew(t.Context())
		must(t, err)
	}
	if got := run(t, c.pool, "SELECT max(generic_plans)::text FROM pg_prepared_statements"); got != "15" { // after five of their own
		t.Errorf("%s of 20 calls had the same plan, want 15", got)
	}
}

// A call that the server refuses is refused alone.
func TestTogetherWithABadOne(t *testing.T) {
	c := newCrowd(t, start(t), 5)
	var calls []func() error
	for i := range 5 {
		calls = append(calls, func() error { return c.take(t.Context(), i, []string{"x", "no UTF-8 \xff"}[i%2]) })
	}
	for i, answer := range c.meet(calls...) {
		if err := <-answer; (err == nil) != (i%2 == 0) || err != nil && !strings.Contains(err.Error(), entryOf(i)) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	c.made(6)
}

// Of a statement with an error that leaves open what was done, no call is sent again; of one that was not sent, each is.
func TestTogetherAfterAnError(t *testing.T) {
	url := start(t)
	for _, code := range []string{"40003", "08006"} {
		t.Run(code, func(t *testing.T) {
			c := newCrowd(t, url, 2)
			run(t, session(t, url), "CREATE FUNCTION "+c.schema+".fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'x' USING ERRCODE = '"+code+"'; END $$")
			run(t, session(t, url), "CREATE TRIGGER fail BEFORE UPDATE ON "+c.schema+".entry EXECUTE FUNCTION "+c.schema+".fail()")
			for _, answer := range c.meet(func() error { return c.take(t.Context(), 0, "x") }, func() error { return c.take(t.Context(), 1, "x") }) {
				if err := <-answer; err == nil || !strings.Contains(err.Error(), code) {
					t.Errorf("%v, want SQLSTATE %s", err, code)
				}
			}
			c.made(1)
		})
	}
	t.Run("dead connection", func(t *testing.T) {
		c := newCrowd(t, url, 2)
		c.dies.Store(true)
		for _, answer := range c.meet(func() error { return c.take(t.Context(), 0, "x") }, func() error { return c.take(t.Context(), 1, "x") }) {
			must(t, <-answer)
		}
		c.made(3)
	})
}

// If the connection breaks, nothing is known of any call, and none is sent again.
func TestTogetherOverABrokenConnection(t *testing.T) {
	url := start(t)
	c := newCrowd(t, url, 3)
	var calls []func() error
	for i := range 3 {
		calls = append(calls, func() error { return c.take(t.Context(), i, "x") })
	}
	answers, other := c.blocked(url, calls...)
	run(t, other, "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
	run(t, other, "COMMIT")
	for i, answer := range answers {
		if err := <-answer; err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), "57P01") {
			t.Errorf("call %d: %v, want that the server has stopped the connection", i, err)
		}
	}
	c.made(1)
}
