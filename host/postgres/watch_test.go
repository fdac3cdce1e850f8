package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/store"
)

// A watch is a call of Watch that is under way.
type watch struct {
	names chan string
	ended chan error
}

// watching returns once a store gets hints.
func watching(t *testing.T, s *postgres.Store) (w watch, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w = watch{make(chan string, 10000), make(chan error, 1)}
	go func() { w.ended <- s.Watch(ctx, "app", func(name string) { w.names <- name }) }()
	w.wants(t, "")
	return w, func() {
		cancel()
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
	}
}

// wants checks which hints come next, in any order.
func (w watch) wants(t *testing.T, names ...string) {
	t.Helper()
	var got []string
	for range names {
		select {
		case name := <-w.names:
			got = append(got, name)
		case err := <-w.ended:
			t.Fatal("it has ended: ", err)
		case <-time.After(20 * time.Second):
			t.Fatalf("heard %q, want %q", got, names)
		}
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		t.Errorf("heard %q, want %q", got, names)
	}
}

// What another store of the same tables does is heard, and nothing else: neither the own changes nor those of another app or
// prefix.
func TestChangesAreHeard(t *testing.T) {
	url := start(t)
	one, other := open(t, postgres.Config{URL: url}), open(t, postgres.Config{URL: url})
	elsewhere := open(t, postgres.Config{URL: url, Prefix: "other_"})
	w, stop := watching(t, one)
	defer stop()
	_, end := watching(t, other) // who watches says what it releases
	ctx := t.Context()
	change := func(s *postgres.Store, app string, heard func(name string)) {
		e, err := s.Create(ctx, app+"/job", []byte("x"))
		must(t, err)
		heard(app + "/job")
		l := s.Lease(app+"/job", ours)
		_, err = l.Acquire(ctx, time.Minute, e.ETag)
		must(t, err)
		must(t, l.Release(ctx))
		heard(app + "/job")
		c := s.Lease(app+"/job", third).(store.Combiner)
		w, err := c.AcquireWrite(ctx, time.Minute, e.ETag, []byte("y"))
		must(t, err)
		w, err = c.WriteRelease(ctx, w.ETag, []byte("z"))
		must(t, err)
		heard(app + "/job")
		_, err = s.Lease(app+"/job", theirs).Acquire(ctx, time.Minute, w.ETag)
		must(t, err)
		must(t, s.Break(ctx, app+"/job", 0))
		heard(app + "/job")
		r, err := s.WriteDocument(ctx, app+"/.orders", "", []byte("x"))
		must(t, err)
		heard(app + "/.orders")
		_, err = s.WriteDocument(ctx, app+"/.orders", r.ETag, []byte("y"))
		must(t, err)
		heard(app + "/.orders")
	}
	nothing := func(string) {}
	change(elsewhere, "app", nothing)
	change(other, "apple", nothing)
	change(other, "app", func(name string) { w.wants(t, name) })
	_, err := one.WriteDocument(ctx, "app/.own", "", nil)
	must(t, err)
	e, err := other.Read(ctx, "app/job")
	must(t, err)
	last := other.Lease("app/job", ours)
	_, err = last.Acquire(ctx, time.Minute, e.ETag)
	must(t, err)
	must(t, last.Release(ctx))
	end() // a replica that stops says so before it is gone
	w.wants(t, "app/job")
}

// A connection that is lost is made again, and then anything may have changed.
func TestLostConnectionIsMadeAgain(t *testing.T) {
	url := start(t)
	one, other := open(t, postgres.Config{URL: url}), open(t, postgres.Config{URL: url})
	w, stop := watching(t, one)
	defer stop()
	c := session(t, url)
	for _, name := range []string{"app/.first", "app/.second"} {
		if n := run(t, c, "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"); n != "1" {
			t.Fatalf("%s connections listen", n)
		}
		w.wants(t, "")
		_, err := other.WriteDocument(t.Context(), name, "", nil)
		must(t, err)
		w.wants(t, name)
	}
}

// Without a second connection the store says that it cannot watch, and so does doctor, also through a pooler that passes no
// notifications on.
func TestCannotWatch(t *testing.T) {
	url := start(t)
	one := open(t, postgres.Config{URL: url + " pool_max_conns=1"})
	if err := one.Watch(t.Context(), "app", func(string) {}); err == nil || !strings.Contains(err.Error(), "one connection") {
		t.Errorf("got %v, want one connection", err)
	}
	for want, s := range map[string]*postgres.Store{
		"one connection":  one,
		"no notification": open(t, postgres.Config{Pool: deafPool(t, url, new(atomic.Bool))}),
	} {
		for _, check := range s.Examine("app", time.Now) {
			if f := check.Do(t.Context()); check.Name == "notifications" && (f.Fails || !strings.Contains(f.Text, want)) {
				t.Errorf("doctor: %+v, want %q", f, want)
			}
		}
		_, err := s.WriteDocument(t.Context(), "app/."+strings.ReplaceAll(want, " ", "-"), "", nil) // calls go on
		must(t, err)
	}
}

// Who got no notification at first, through a pooler that was replaced later or from a server in trouble, gets them later.
func TestSilentAtFirst(t *testing.T) {
	t.Parallel()
	url := start(t)
	var hears atomic.Bool
	s, other := open(t, postgres.Config{Pool: deafPool(t, url, &hears)}), open(t, postgres.Config{URL: url})
	ctx, cancel := context.WithCancel(t.Context())
	w := watch{make(chan string, 100), make(chan error, 1)}
	go func() { w.ended <- s.Watch(ctx, "app", func(name string) { w.names <- name }) }()
	c, listens := session(t, url), "EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database())"
	until(t, c, listens)
	until(t, c, "NOT "+listens) // it was given up
	hears.Store(true)
	w.wants(t, "")
	_, err := other.WriteDocument(t.Context(), "app/.later", "", nil)
	must(t, err)
	w.wants(t, "app/.later")
	cancel()
	must(t, <-w.ended)
}

// deafPool is one whose connections drop notifications until hears is true.
func deafPool(t *testing.T, url string, hears *atomic.Bool) *pgxpool.Pool {
	c, err := pgxpool.ParseConfig(url)
	must(t, err)
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if hears.Load() {
			return conn, err
		}
		return &deaf{Conn: conn}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// A connection that hangs at LISTEN, as one that the network has dropped, is given up for another.
func TestListenThatHangs(t *testing.T) {
	t.Parallel()
	c, err := pgxpool.ParseConfig(start(t))
	must(t, err)
	dial := c.ConnConfig.DialFunc
	var hung atomic.Bool
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &dropped{conn, &hung}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	must(t, err)
	t.Cleanup(pool.Close)
	_, stop := watching(t, open(t, postgres.Config{Pool: pool}))
	stop()
	if !hung.Load() {
		t.Error("none has hung")
	}
}

// A dropped connection does not send the first LISTEN of all.
type dropped struct {
	net.Conn
	hung *atomic.Bool
}

func (c *dropped) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("LISTEN")) && c.hung.CompareAndSwap(false, true) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A deaf connection drops notifications, as a pooler does for a client that has no server at the moment.
type deaf struct {
	net.Conn
	in, out bytes.Buffer
}

func (c *deaf) Read(b []byte) (int, error) {
	for c.out.Len() == 0 {
		n, err := c.Conn.Read(b)
		if err != nil {
			return 0, err
		}
		c.in.Write(b[:n])
		for c.in.Len() >= 5 { // a type, and the length of the rest with its own four bytes
			length := 1 + int(binary.BigEndian.Uint32(c.in.Bytes()[1:]))
			if c.in.Len() < length {
				break
			}
			if message := c.in.Next(length); message[0] != 'A' {
				c.out.Write(message)
			}
		}
	}
	return c.out.Read(b)
}
