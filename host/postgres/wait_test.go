package postgres_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/store"
)

const (
	ours   = "11111111-1111-4111-8111-111111111111"
	theirs = "22222222-2222-4222-8222-222222222222"
	third  = "33333333-3333-4333-8333-333333333333"
)

// session is a connection of the test's own.
func session(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, c interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, statement string, args ...any) (text string) {
	t.Helper()
	if err := c.QueryRow(t.Context(), statement, args...).Scan(&text); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", statement, err)
	}
	return text
}

// until waits until a query of the server says true.
func until(t testing.TB, c *pgx.Conn, question string, args ...any) {
	t.Helper()
	for run(t, c, "SELECT ("+question+")::text", args...) != "true" {
		run(t, c, "SELECT pg_sleep(0.01)::text")
	}
}

// waits returns once a call waits for a row, or for a standby.
func waits(t testing.TB, c *pgx.Conn, answer <-chan error) {
	t.Helper()
	const waiting = `SELECT count(*)::text FROM pg_stat_activity
WHERE (wait_event_type = 'Lock' OR wait_event = 'SyncRep') AND backend_type = 'client backend' AND datname = current_database()`
	for run(t, c, waiting) == "0" {
		select {
		case err := <-answer:
			t.Fatalf("answered without a wait: %v", err)
		default:
			run(t, c, "SELECT pg_sleep(0.01)::text")
		}
	}
}

// A call that waits for the row is judged by what is true after the wait, by time as well as by content. The other
// session may change the row meanwhile, or only have locked it: then the server does not look at the row again.
func TestJudgedAfterTheWait(t *testing.T) {
	url := start(t)
	s, other, watch := open(t, postgres.Config{URL: url}), session(t, url), session(t, url)
	const (
		lock    = "SELECT name FROM soloist.entry WHERE name = $1 FOR UPDATE"
		renewed = "UPDATE soloist.entry SET ends = clock_timestamp() + interval '1 minute' WHERE name = $1 RETURNING name"
		written = "UPDATE soloist.entry SET etag = gen_random_uuid() WHERE name = $1 RETURNING name"
		taken   = "UPDATE soloist.entry SET id = '" + third + "', ends = clock_timestamp() + interval '1 minute' WHERE name = $1 RETURNING name"
		freed   = "UPDATE soloist.entry SET id = NULL, ends = '-infinity' WHERE name = $1 RETURNING name"
		gone    = "DELETE FROM soloist.entry WHERE name = $1 RETURNING name"
	)
	held := func(e store.Entry) error { // by a lease that ends during the wait
		return acquire(s, e, ours, time.Second)
	}
	heldLong := func(e store.Entry) error { return acquire(s, e, ours, time.Minute) }
	free := func(store.Entry) error { return nil }
	write := func(ctx context.Context, e store.Entry) error {
		_, err := s.Lease(e1, ours).Write(ctx, e.ETag, []byte("late"))
		return err
	}
	save := func(ctx context.Context, e store.Entry) error {
		_, err := s.Lease(e1, ours).(store.Checkpointer).Save(ctx, e.ETag, []byte("late"), []byte("late"))
		return err
	}
	transact := func(ctx context.Context, e store.Entry) error {
		_, err := s.Lease(e1, ours).(store.Transactor).Transact(ctx, func(_ any, write store.TransactionWrite) error {
			return write(ctx, e.ETag, []byte("late"), nil)
		})
		return err
	}
	take := func(ctx context.Context, e store.Entry) error {
		_, err := s.Lease(e1, theirs).Acquire(ctx, time.Minute, e.ETag)
		return err
	}
	renew := func(ctx context.Context, _ store.Entry) error {
		_, err := s.Lease(e1, ours).Renew(ctx)
		return err
	}
	for _, test := range []struct {
		name    string
		before  func(store.Entry) error
		other   string
		expires bool // the wait is longer than the lease
		call    func(context.Context, store.Entry) error
		want    error
	}{
		{"write past the end of the lease", held, lock, true, write, store.ErrLost},
		{"save past the end of the lease", held, lock, true, save, store.ErrLost},
		{"transaction past the end of the lease", held, lock, true, transact, store.ErrLost},
		{"write within the lease", heldLong, lock, false, write, nil},
		{"acquire past the end of the lease", held, lock, true, take, nil},
		{"acquire during a renewal", held, renewed, true, take, store.ErrHeld},
		{"acquire during a write", free, written, false, take, store.ErrChanged},
		{"acquire during a release", heldLong, freed, false, take, nil},
		{"acquire during an acquisition", free, taken, false, take, store.ErrHeld},
		{"acquire during a removal", free, gone, false, take, fs.ErrNotExist},
		{"write during a write", heldLong, written, false, write, store.ErrChanged},
		{"write during an acquisition", held, taken, true, write, store.ErrLost},
		{"renew during an acquisition", held, taken, true, renew, store.ErrLost},
		{"renew past the end of the lease", held, lock, true, renew, nil},
		{"break during a write", heldLong, written, false, func(ctx context.Context, e store.Entry) error { return s.BreakUnchanged(ctx, e1, e.ETag) }, store.ErrChanged},
		{"break during a release", heldLong, freed, false, func(ctx context.Context, e store.Entry) error { return s.Break(ctx, e1, 0) }, store.ErrLost},
		{"remove past the end of the lease", held, lock, true, func(ctx context.Context, e store.Entry) error { return s.Remove(ctx, e1, e.ETag) }, nil},
		{"remove during an acquisition", free, taken, false, func(ctx context.Context, e store.Entry) error { return s.Remove(ctx, e1, e.ETag) }, store.ErrLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			e, err := s.Create(ctx, e1, []byte("first"))
			must(t, err)
			defer run(t, watch, "DELETE FROM soloist.entry RETURNING name")
			must(t, test.before(e))
			tx, err := other.Begin(ctx)
			must(t, err)
			defer tx.Rollback(context.Background()) //nolint:errcheck // after Commit it does nothing
			run(t, tx, test.other, e1)
			answer := make(chan error, 1)
			go func() { answer <- test.call(ctx, e) }()
			waits(t, watch, answer)
			if test.expires {
				until(t, watch, "EXISTS (SELECT FROM soloist.entry WHERE name = $1 AND clock_timestamp() > ends)", e1)
			}
			must(t, tx.Commit(ctx))
			if err := <-answer; !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

const e1 = "app/job"

func acquire(s *postgres.Store, e store.Entry, id string, d time.Duration) error {
	_, err := s.Lease(e1, id).Acquire(context.Background(), d, e.ETag)
	return err
}

// The server gives up a wait before the caller does, and says so: nothing was changed.
func TestWaitIsBounded(t *testing.T) {
	url := start(t)
	s, other := open(t, postgres.Config{URL: url}), session(t, url)
	e, err := s.Create(t.Context(), e1, []byte("first"))
	must(t, err)
	tx, err := other.Begin(t.Context())
	must(t, err)
	run(t, tx, "SELECT name FROM soloist.entry FOR UPDATE")
	err = acquire(s, e, ours, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "another session has locked the row; nothing was changed") {
		t.Errorf("got %v, want a lock that is not available", err)
	}
	must(t, tx.Rollback(t.Context()))
	must(t, acquire(s, e, ours, time.Minute)) // nothing of it is left in the session
	for _, left := range []struct {
		time time.Duration
		want string
	}{{time.Minute, "4500"}, {0, "1"}} {
		if got := postgres.LockTime(time.Now().Add(left.time)); got != left.want {
			t.Errorf("with %s left, a statement waits %s ms for a row", left.time, got)
		}
	}
	if got := postgres.LockTime(time.Time{}); got != "4500" {
		t.Errorf("without a limit, a statement waits %s ms for a row", got)
	}
}

// A log that is removed during an append leaves no bytes behind, on which a log of that name would stumble.
func TestRemoveLogDuringAppend(t *testing.T) {
	url := start(t)
	s, other, watch := open(t, postgres.Config{URL: url}), session(t, url), session(t, url)
	name := store.LogName(e1, "1")
	must(t, s.Append(t.Context(), name, 0, []byte("one")))
	tx, err := other.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // after Commit it does nothing
	run(t, tx, "UPDATE soloist.log SET size = 6 RETURNING name")
	run(t, tx, "INSERT INTO soloist.chunk SELECT id, 3, 'two' FROM soloist.log RETURNING start::text")
	answer := make(chan error, 1)
	go func() { answer <- s.RemoveLog(t.Context(), name) }()
	waits(t, watch, answer)
	must(t, tx.Commit(t.Context()))
	must(t, <-answer)
	if got := run(t, watch, "SELECT count(*)::text FROM soloist.chunk"); got != "0" {
		t.Errorf("%s chunks are left", got)
	}
}
