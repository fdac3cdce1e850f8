package postgres

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/soloist-go/soloist/store"
)

// An ask is what a call asks of an entry, with a statement made by [change].
type ask struct {
	op        op
	name      string
	statement string
	args      []any     // one for each column, of a type that columns knows
	until     time.Time // the end of the caller's patience; zero: it has none

	verdict  string // empty: the statement has said nothing of it
	revision store.Revision
}

// answer is what the statement has said.
func (a *ask) answer() (store.Revision, error) {
	switch a.verdict {
	case "":
		return store.Revision{}, refuse(a.op, a.name, fs.ErrNotExist)
	case done:
		return a.revision, nil
	}
	return store.Revision{}, refuse(a.op, a.name, verdicts[a.verdict])
}

// change asks in a statement of its own.
func (s *Store) change(ctx context.Context, o op, name, statement string, args ...any) (store.Revision, error) {
	if err := s.prepare(ctx, o, name); err != nil {
		return store.Revision{}, err
	}
	return s.changeBy(ctx, s.pool, &ask{op: o, name: name, statement: statement, args: args})
}

// changeBy is change on a connection or in a transaction.
func (s *Store) changeBy(ctx context.Context, by querier, a *ask) (store.Revision, error) {
	a.until, _ = ctx.Deadline()
	if err := run(ctx, by, a.statement, a); err != nil {
		return store.Revision{}, s.translate(a.op, a.name, err)
	}
	return a.answer()
}

// together is change that may share a statement with other calls of its kind. See shared.
func (s *Store) together(ctx context.Context, o op, name, statement string, args ...any) (store.Revision, error) {
	if err := s.prepare(ctx, o, name); err != nil {
		return store.Revision{}, err
	}
	a := &ask{op: o, name: name, statement: statement, args: args}
	a.until, _ = ctx.Deadline()
	with := s.join(ctx, a)
	if with == nil {
		return s.changeBy(ctx, s.pool, a)
	}
	defer s.gathering.leave(with, a)
	select {
	case <-with.over:
	case <-ctx.Done():
		select {
		case <-with.over: // the answer has come, too
		default:
			return store.Revision{}, s.translate(o, name, ctx.Err())
		}
	}
	switch {
	case with.err != nil:
		return store.Revision{}, s.translate(o, name, with.err)
	case a.verdict == "" && len(with.asks) > 1:
		return s.changeBy(ctx, s.pool, a)
	}
	return a.answer()
}

// A shared statement is one for the calls of a kind that come until it has a connection, as when a hundred jobs are due at once:
// they then need one round trip and one commit in place of a hundred. No call waits for another to come.
//
// If there is more than one call, it is not for the others to wait for a row: the statement skips those that somebody has
// locked. What it says nothing of, because the row is locked or missing or because the server has refused the statement, was not
// done, and is asked again, alone.
//
// It goes on as long as one of its callers waits for it.
type shared struct {
	asks    []*ask // what it asks, without that of callers who left before it was sent
	waiting int    // callers that have not left
	cancel  context.CancelFunc
	over    chan struct{} // closed when it has ended
	err     error         // what it has failed with
}

// A gathering has what calls can still join, by the text of the statement.
type gathering struct {
	mu     sync.Mutex
	open   map[string]*shared
	inside int // calls in all statements that are shared
}

// mostTogether is how many calls share a statement: its rows are locked until it is over.
const mostTogether = 200

// join adds a call to a statement. It returns nil if another call for the entry is in it.
func (s *Store) join(ctx context.Context, a *ask) *shared {
	g := &s.gathering
	g.mu.Lock()
	defer g.mu.Unlock()
	with := g.open[a.statement]
	if with != nil && slices.ContainsFunc(with.asks, func(b *ask) bool { return a.name == b.name }) {
		return nil
	}
	g.inside++
	if with == nil || len(with.asks) == mostTogether {
		with = &shared{over: make(chan struct{})}
		ctx, with.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if g.open == nil {
			g.open = map[string]*shared{}
		}
		g.open[a.statement] = with
		go s.lead(ctx, a.statement, with, g.inside > 1)
	}
	with.asks = append(with.asks, a)
	with.waiting++
	return with
}

// leave is what each caller does at its end.
func (g *gathering) leave(with *shared, a *ask) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[a.statement] == with { // it is not sent yet
		with.asks = slices.DeleteFunc(with.asks, func(b *ask) bool { return a == b })
	}
	g.inside--
	if with.waiting--; with.waiting == 0 {
		with.cancel()
		g.end(a.statement, with)
	}
}

// close returns the calls of a statement, to which none is added any more.
func (g *gathering) close(statement string, with *shared) []*ask {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(statement, with)
	return with.asks
}

func (g *gathering) end(statement string, with *shared) {
	if g.open[statement] == with {
		delete(g.open, statement)
	}
}

// lead runs a shared statement. It is no caller's goroutine, since the end of a caller's context ends that call and no other.
func (s *Store) lead(ctx context.Context, statement string, with *shared, crowded bool) {
	defer close(with.over)
	with.err = errUnended
	conn, err := s.pool.Acquire(ctx)
	if err == nil {
		defer conn.Release()
		if crowded {
			runtime.Gosched() // goroutines that are due at the same instant can join
		}
	}
	switch all := s.gathering.close(statement, with); {
	case err != nil || len(all) == 0:
	case len(all) == 1:
		err = run(ctx, conn, statement, all...)
	default:
		err = run(ctx, conn, strings.Replace(statement, forUpdate, forUpdateFree, 1), all...)
		if notDone(err) {
			err = nil
		}
	}
	with.err = err
}

var errUnended = errors.New("the statement did not end")

// notDone reports whether an error says that nothing of a statement was done: the server has refused it and goes on, or it was
// not sent. Class 08 and 40003 leave that open (https://www.postgresql.org/docs/current/errcodes-appendix.html).
func notDone(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	refused := ok && e.SeverityUnlocalized == "ERROR" && e.Code != "40003" && !strings.HasPrefix(e.Code, "08")
	return refused || pgconn.SafeToRetry(err)
}

// run runs a statement for some calls, with different names.
func run(ctx context.Context, by querier, statement string, all ...*ask) error {
	rows, err := by.Query(ctx, statement, columns(all)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	answers := make(map[string]ask, len(all))
	for rows.Next() {
		var a ask
		if err := rows.Scan(&a.name, &a.verdict, &a.revision.Date, &a.revision.ETag); err != nil {
			return err
		}
		answers[a.name] = a
	}
	if err := rows.Err(); err != nil {
		return err // what it has said before does not count
	}
	for _, a := range all {
		a.verdict, a.revision = answers[a.name].verdict, answers[a.name].revision
	}
	return nil
}

// columns are the parameters of a statement.
func columns(all []*ask) []any {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.name
	}
	p := []any{names, lockTime(all[0].until)}
	for i, first := range all[0].args {
		switch first.(type) {
		case string:
			p = append(p, column[string](all, i))
		case int64:
			p = append(p, column[int64](all, i))
		case *int64:
			p = append(p, column[*int64](all, i))
		default:
			p = append(p, column[[]byte](all, i))
		}
	}
	return p
}

func column[T any](all []*ask, i int) []T {
	values := make([]T, len(all))
	for j, a := range all {
		values[j] = a.args[i].(T)
	}
	return values
}

// lockTime is how long a statement may wait for a row, in milliseconds: less than what its caller's patience leaves, so that the
// server's refusal, which is certain, comes before the end of the context, which is not.
func lockTime(until time.Time) string {
	d := statementTime
	if !until.IsZero() {
		d = min(d, time.Until(until))
	}
	return strconv.FormatInt(max((d*9/10).Milliseconds(), 1), 10) // zero would be no limit
}
