package postgres_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/store"
)

// A counted connection counts what is sent: a write for each round trip.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(b)
}

// Once a connection knows the statements, a call is one round trip, also one that is refused.
func TestOneRoundTrip(t *testing.T) {
	c, err := pgxpool.ParseConfig(start(t) + " pool_max_conns=1")
	must(t, err)
	var trips atomic.Int64
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return counted{conn, &trips}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	must(t, err)
	defer pool.Close()
	s := open(t, postgres.Config{Pool: pool})
	ctx, log := t.Context(), store.LogName(e1, "1")
	for _, warm := range []bool{true, false} {
		var etag, document string
		own, rest := s.Lease(e1, ours), s.Lease(e1, theirs)
		for i, call := range []func() error{
			func() error { e, err := s.Create(ctx, e1, []byte("x")); etag = e.ETag; return err },
			func() error { _, err := s.Read(ctx, e1); return err },
			func() error { _, err := own.Acquire(ctx, time.Minute, etag); return err },
			func() error { _, err := own.Renew(ctx); return err },
			func() error { r, err := own.Write(ctx, etag, []byte("y")); etag = r.ETag; return err },
			func() error {
				r, err := own.(store.Checkpointer).Save(ctx, etag, []byte("y"), []byte("z"))
				etag = r.ETag
				return err
			},
			func() error { _, err := own.(store.Checkpointer).Load(ctx, etag); return err },
			func() error { _, err := rest.Acquire(ctx, time.Minute, etag); return refused(err) },
			func() error { _, err := rest.Renew(ctx); return refused(err) },
			func() error { return s.BreakUnchanged(ctx, e1, etag) },
			func() error { return s.Break(ctx, e1, 0) },
			func() error { return own.Release(ctx) },
			func() error {
				r, err := rest.(store.Combiner).AcquireWrite(ctx, time.Minute, etag, []byte("y"))
				etag = r.ETag
				return err
			},
			func() error {
				r, err := rest.(store.Combiner).WriteRelease(ctx, etag, []byte("y"))
				etag = r.ETag
				return err
			},
			func() error { return s.List(ctx, "app", func(string, store.Entry) bool { return false }) },
			func() error { r, err := s.WriteDocument(ctx, "app/.d", document, nil); document = r.ETag; return err },
			func() error { _, err := s.WriteDocument(ctx, "app/.d", document, nil); return err },
			func() error { _, err := s.ReadDocument(ctx, "app/.d", ""); return err },
			func() error { return s.Append(ctx, log, 0, []byte("x")) },
			func() error { return s.Append(ctx, log, 1, []byte("x")) },
			func() error { _, err := s.ReadLog(ctx, log, 0, 9); return err },
			func() error { return s.Logs(ctx, e1, func(string, int64) bool { return true }) },
			func() error { return s.RemoveLog(ctx, log) },
			func() error { return s.Remove(ctx, e1, etag) },
		} {
			before := trips.Load()
			if err := call(); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
			if got := trips.Load() - before; !warm && got != 1 {
				t.Errorf("call %d: %d round trips", i, got)
			}
		}
		_, err := pool.Exec(ctx, "DELETE FROM soloist.document")
		must(t, err)
	}
}

// refused is an error for any other answer.
func refused(err error) error {
	if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrLost) {
		return nil
	}
	return errTrouble
}
