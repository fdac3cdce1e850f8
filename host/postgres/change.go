package postgres

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
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

	queued struct {
		taken    context.CancelFunc // it need not wait for a connection any more
		deadline time.Time          // of the caller; zero: none
		done     chan struct{}      // closed once the statement is over
		err      error              // what it failed with
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
	a := &ask{op: o, name: name, statement: statement, args: args}
	waits, taken := context.WithCancel(ctx)
	defer taken()
	a.queued.taken, a.queued.done = taken, make(chan struct{})
	a.queued.deadline, _ = ctx.Deadline()

	s.queue.add(a)
	conn, err := s.pool.Acquire(waits)
	all := s.queue.take(a, err == nil)
	switch {
	case all == nil && err == nil: // another call has taken it along
		conn.Release()
	case all == nil:
	case err != nil:
		return store.Revision{}, s.translate(o, name, err)
	case len(all) == 1:
		defer conn.Release()
		return s.changeBy(ctx, conn, a)
	default:
		go runAll(context.WithoutCancel(ctx), conn, all) // not here, since the end of ctx ends this call and not the others
	}
	select {
	case <-a.queued.done:
	case <-ctx.Done():
		return store.Revision{}, s.translate(o, name, context.Cause(ctx))
	}
	switch {
	case a.queued.err != nil:
		return store.Revision{}, s.translate(o, name, a.queued.err)
	case a.verdict == "":
		return s.changeBy(ctx, s.pool, a)
	}
	return a.answer()
}

// runAll runs one statement for calls of one kind. It goes on as long as one of them waits.
func runAll(ctx context.Context, conn *pgxpool.Conn, all []*ask) {
	defer conn.Release()
	until := all[0].queued.deadline
	for _, a := range all {
		if until.IsZero() || a.queued.deadline.IsZero() {
			until = time.Now().Add(statementTime)
			break
		}
		if a.queued.deadline.After(until) {
			until = a.queued.deadline
		}
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := run(ctx, conn, strings.Replace(all[0].statement, forUpdate, forUpdateFree, 1), all...)
	if isRefusal(err) {
		err = nil
	}
	for _, a := range all {
		a.queued.err = err
		close(a.queued.done)
	}
}

// isRefusal reports whether the server has refused a statement, and goes on: nothing of it was done.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.SeverityUnlocalized == "ERROR"
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

// take takes a call out of the queue, and also the others of its statement if it may; none that asks for an entry of one before
// it. It returns nil if the call is not there any more.
func (q *queue) take(a *ask, others bool) (all []*ask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[a.statement]
	i := slices.Index(waiting, a)
	if i < 0 {
		return nil
	}
	waiting = slices.Delete(waiting, i, i+1)
	all = []*ask{a}
	if others {
		names := map[string]bool{a.name: true}
		waiting = slices.DeleteFunc(waiting, func(b *ask) bool {
			if names[b.name] || len(all) == mostTogether {
				return false
			}
			names[b.name] = true
			all = append(all, b)
			b.queued.taken()
			return true
		})
	}
	q.waiting[a.statement] = waiting
	return all
}
