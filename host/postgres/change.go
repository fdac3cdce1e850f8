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
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/store"
)

// An ask is what a call asks of an entry, with a statement made by [change].
type ask struct {
	op        op
	name      string
	statement string
	args      []any // one for each column, of a type that columns knows

	verdict  string // empty: the statement has said nothing of it
	revision store.Revision

	shared *shared       // the statement that it shares; nil: none yet
	over   chan struct{} // closed once that has ended
	err    error         // of it
}

// A shared statement goes on as long as one of its callers waits for it.
type shared struct {
	waiting atomic.Int64
	cancel  context.CancelFunc
}

func (s *shared) leave() {
	if s.waiting.Add(-1) == 0 {
		s.cancel()
	}
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
	if err := run(ctx, by, a.statement, a); err != nil {
		return store.Revision{}, s.translate(a.op, a.name, err)
	}
	return a.answer()
}

// together is change that shares a statement with other calls of its kind if there are more of them than connections, as when a
// hundred jobs are due at once: they then need one round trip and one commit in place of a hundred.
//
// The call that gets a connection takes along those that still wait for one, so none waits for another to come. It is not
// for them to wait for a row either: the statement skips those that others have locked. What it says nothing of, because the
// row is locked or missing or because the server has refused the statement, was not done, and is asked again, alone.
func (s *Store) together(ctx context.Context, o op, name, statement string, args ...any) (store.Revision, error) {
	if err := s.prepare(ctx, o, name); err != nil {
		return store.Revision{}, err
	}
	a := &ask{op: o, name: name, statement: statement, args: args, over: make(chan struct{})}
	s.queue.add(a)
	select {
	case s.places <- struct{}{}:
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			<-s.places
			if s.queue.leave(a) {
				return store.Revision{}, s.translate(o, name, err)
			}
			break
		}
		free := func() { conn.Release(); <-s.places }
		runtime.Gosched() // goroutines that are due at the same instant can join
		with := new(shared)
		all := s.queue.follow(a, with)
		if len(all) == 0 { // another call has taken it along
			free()
			break
		}
		if len(all) == 1 {
			defer free()
			return s.changeBy(ctx, conn, a)
		}
		var lasts context.Context
		lasts, with.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go func() { // not here, since the end of ctx ends this call and not the others
			defer free()
			runShared(lasts, conn, all)
		}()
	case <-a.over:
	case <-ctx.Done():
		if s.queue.leave(a) {
			return store.Revision{}, s.translate(o, name, ctx.Err())
		}
	}
	return s.wait(ctx, a)
}

// wait returns the answer of a shared statement.
func (s *Store) wait(ctx context.Context, a *ask) (store.Revision, error) {
	defer a.shared.leave()
	select {
	case <-a.over:
	case <-ctx.Done():
		return store.Revision{}, s.translate(a.op, a.name, ctx.Err())
	}
	switch {
	case a.err != nil:
		return store.Revision{}, s.translate(a.op, a.name, a.err)
	case a.verdict == "":
		return s.changeBy(ctx, s.pool, a)
	}
	return a.answer()
}

// runShared runs one statement for calls of one kind.
func runShared(ctx context.Context, conn *pgxpool.Conn, all []*ask) {
	err := errUnended
	defer func() {
		for _, a := range all {
			a.err = err
			close(a.over)
		}
	}()
	if err = run(ctx, conn, strings.Replace(all[0].statement, forUpdate, forUpdateFree, 1), all...); notDone(err) {
		err = nil
	}
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
	rows, err := by.Query(ctx, statement, columns(ctx, all)...)
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
func columns(ctx context.Context, all []*ask) []any {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.name
	}
	p := []any{names, lockTime(ctx)}
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

// lockTime is how long a statement may wait for a row, in milliseconds: less than what the context leaves, so that the
// server's refusal, which is certain, comes before the end of the context, which is not.
func lockTime(ctx context.Context) string {
	d := statementTime
	if deadline, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(deadline))
	}
	return strconv.FormatInt(max((d*9/10).Milliseconds(), 1), 10) // zero would be no limit
}

// A queue has the calls that wait for a connection, those of one statement together.
type queue struct {
	mu      sync.Mutex
	waiting map[string][]*ask
}

// mostTogether is how many calls share a statement: its rows are locked until it is over.
const mostTogether = 200

func (q *queue) add(a *ask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[string][]*ask{}
	}
	q.waiting[a.statement] = append(q.waiting[a.statement], a)
}

// leave takes a call out of the queue, and reports whether it was there.
func (q *queue) leave(a *ask) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[a.statement]
	i := slices.Index(waiting, a)
	if i >= 0 {
		q.waiting[a.statement] = slices.Delete(waiting, i, i+1)
	}
	return i >= 0
}

// follow takes a call out of the queue, and others along: of its statement, and none for the entry of one before it. It returns
// none if the call is not there any more.
func (q *queue) follow(a *ask, with *shared) []*ask {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[a.statement]
	i := slices.Index(waiting, a)
	if i < 0 {
		return nil
	}
	waiting[0], waiting[i] = a, waiting[0]
	var all []*ask
	names := map[string]bool{}
	q.waiting[a.statement] = slices.DeleteFunc(waiting, func(b *ask) bool {
		if names[b.name] || len(all) == mostTogether {
			return false
		}
		names[b.name] = true
		all = append(all, b)
		return true
	})
	with.waiting.Store(int64(len(all)))
	for _, b := range all {
		b.shared = with
	}
	return all
}
