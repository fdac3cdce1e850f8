package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/internal/examine"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/store"
)

var _ store.Watcher = (*Store)(nil)

const (
	// gather is how long changes are gathered after a notification, so that a tick of many jobs makes few.
	gather = 50 * time.Millisecond

	// testTime is how long a connection waits for a notification that was sent to it as a test.
	testTime = 3 * time.Second

	// pingEvery is how long a connection may bring nothing before it is tried. The network may have dropped it.
	pingEvery = time.Minute

	longestPause = 30 * time.Second // between two connections
	silentPause  = 10 * time.Minute // the same after a test that brought nothing
)

// Why a store does not watch.
var (
	errAlone  = errors.New("postgres: the pool has one connection, which calls need: changes are seen by polls")
	errSilent = errors.New("postgres: no notification arrives, as through PgBouncer in transaction mode: changes are seen by polls")
)

// A news is what a store says to others of the same tables.
type news struct {
	channel string      // of the tables
	origin  string      // of this store, which ignores what it has sent itself
	changes chan string // names to be sent
	mu      sync.Mutex
	senders int // that read changes
}

func newsOf(schema, prefix string) news {
	sum := sha256.Sum256([]byte(schema + "\x00" + prefix))
	return news{channel: fmt.Sprintf("soloist_%x", sum[:8]), origin: rand.Text()[:8], changes: make(chan string, 1000)}
}

// tells is an expression that notifies of the row whose name is $1. It is for what changes rarely: the server commits
// transactions that notify one after the other, each of which would wait for the disk.
func (n *news) tells() string {
	return fmt.Sprintf("pg_notify('%s', '%s ' || $1::text)::text", n.channel, n.origin)
}

// tell has watchers notified of a change after the call. What does not find room is lost.
func (n *news) tell(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.senders == 0 {
		return
	}
	select {
	case n.changes <- name:
	default:
	}
}

// Watch implements [store.Watcher] by LISTEN, over a connection that it takes out of the pool. From its first success on the
// store also notifies others of what it releases and creates, in transactions that write nothing. A test that brings nothing
// is repeated, ever more rarely: a pooler may be replaced, and a connection may be lost in the middle of the first one.
func (s *Store) Watch(ctx context.Context, app string, changed func(name string)) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worked := false
	for pause := time.Second; ; {
		c, err := s.listen(ctx)
		longest := longestPause
		switch {
		case errors.Is(err, errAlone):
			return err
		case errors.Is(err, errSilent):
			longest = silentPause
		case err == nil:
			if !worked {
				s.news.count(1)
				sending.Go(func() { s.send(ctx) })
			}
			worked, pause = true, time.Second
			changed("")
			hear(ctx, c, s.news.origin, app+"/", changed)
		}
		if !ontime.Sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, longest)
	}
}

// listen returns a connection that gets notifications, which a test has shown. The caller closes it.
func (s *Store) listen(ctx context.Context) (*pgx.Conn, error) {
	if s.pool.Config().MaxConns < 2 {
		return nil, errAlone
	}
	taken, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	c := taken.Hijack()
	if err := s.test(ctx, c); err != nil {
		end(c)
		return nil, err
	}
	return c, nil
}

// test sends a notification over another connection: a pooler may show those of the same connection alone.
func (s *Store) test(ctx context.Context, c *pgx.Conn) error {
	asked, cancel := context.WithTimeout(ctx, statementTime) // the network may have dropped it
	defer cancel()
	if _, err := c.Exec(asked, "LISTEN "+s.news.channel); err != nil {
		return err
	}
	test := rand.Text()
	if err := s.notify(ctx, test); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	for {
		n, err := c.WaitForNotification(limited)
		if limited.Err() != nil && ctx.Err() == nil {
			return errSilent
		}
		if err != nil || n.Payload == s.news.origin+" "+test {
			return err
		}
	}
}

// hear reports what others have changed until the connection fails or ctx ends, and closes it.
func hear(ctx context.Context, c *pgx.Conn, origin, app string, changed func(name string)) {
	defer end(c)
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, pingEvery)
		n, err := c.WaitForNotification(limited)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			n, err = nil, ping(ctx, c)
		}
		cancel()
		if err != nil {
			return
		}
		if n == nil {
			continue
		}
		if by, name, _ := strings.Cut(n.Payload, " "); by != origin && strings.HasPrefix(name, app) {
			changed(name)
		}
	}
}

func ping(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return c.Ping(ctx)
}

// end closes a connection, also one that hangs.
func end(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.Close(ctx)
}

// send notifies others of changes until ctx ends, and then of those that are left. The caller has counted it.
func (s *Store) send(ctx context.Context) {
	defer s.news.count(-1)
	for more := true; more; {
		select {
		case name := <-s.news.changes:
			names := []string{name}
			for range len(s.news.changes) {
				names = append(names, <-s.news.changes)
			}
			_ = s.notify(context.WithoutCancel(ctx), names...) // who misses it polls
		case <-ctx.Done():
		}
		more = ontime.Sleep(ctx, gather) || len(s.news.changes) > 0
	}
}

func (n *news) count(change int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.senders += change
}

func (s *Store) notify(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := s.pool.Exec(ctx, "SELECT pg_notify($1, $2 || ' ' || name) FROM unnest($3::text[]) AS name",
		s.news.channel, s.news.origin, names)
	return err
}

// checkWatch says whether changes are notified.
func (s *Store) checkWatch(ctx context.Context) (f examine.Finding) {
	c, err := s.listen(ctx)
	if err != nil {
		return examine.Finding{Text: short(err), Advice: "orders and free leases are seen some seconds later"}
	}
	end(c)
	return examine.Finding{Text: "changes are notified"}
}
