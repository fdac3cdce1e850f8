package soloist_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A nameless store answers calls of one operation with a success without an ETag,
// and applies none of them.
type nameless struct {
	store.Store
	op string
	on atomic.Bool
}

func (s *nameless) answers(op string) bool { return s.on.Load() && s.op == op }

func (s *nameless) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	if s.answers("create") {
		return store.Entry{Record: record, State: store.Available}, nil
	}
	return s.Store.Create(ctx, name, record)
}

func (s *nameless) Read(ctx context.Context, name string) (store.Entry, error) {
	if s.answers("read") {
		return store.Entry{State: store.Available}, nil
	}
	return s.Store.Read(ctx, name)
}

func (s *nameless) Lease(name, id string) store.Lease {
	return namelessLease{s.Store.Lease(name, id), s}
}

type namelessLease struct {
	store.Lease
	s *nameless
}

func (l namelessLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if l.s.answers("acquire") {
		return store.Revision{}, nil
	}
	return l.Lease.Acquire(ctx, d, etag)
}

func (l namelessLease) Renew(ctx context.Context) (store.Revision, error) {
	if l.s.answers("renew") {
		return store.Revision{}, nil
	}
	return l.Lease.Renew(ctx)
}

func (l namelessLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if l.s.answers("write") {
		return store.Revision{}, nil
	}
	return l.Lease.Write(ctx, etag, record)
}

func (l namelessLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if l.s.answers("save") {
		return store.Revision{}, nil
	}
	return l.Lease.(store.Checkpointer).Save(ctx, etag, record, checkpoint)
}

func (l namelessLease) Load(ctx context.Context, etag string) ([]byte, error) {
	return l.Lease.(store.Checkpointer).Load(ctx, etag)
}

// nameless puts such a store below a replica.
func (c *cluster) nameless(r *replica, op string) *nameless {
	s := &nameless{Store: c.store, op: op}
	r.tap.Store = s
	return s
}

// An answer without an ETag proves neither the lease nor the claim: a run goes on
// and begins only with what the store has.
func TestAnAnswerWithoutAnETagIsNoSuccess(t *testing.T) {
	for _, op := range []string{"create", "read", "acquire", "renew", "write"} {
		t.Run(op, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				running := 0
				job := soloist.Job{Name: "work", Schedule: "@every 1m", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
					if running++; running > 1 {
						t.Errorf("two run at %s", time.Now())
					}
					if r := c.record("work"); r.Token != run.Token || r.Status != store.Running {
						t.Errorf("tick %s runs with token %d, the record says %s with %d", run.Tick, run.Token, r.Status, r.Token)
					}
					soon(ctx, 100*time.Second)
					running--
					return nil
				}}
				a := c.replica("a", job)
				s := c.nameless(a, op)
				s.on.Store(op == "create" || op == "read")
				c.launch(a)
				time.Sleep(70 * time.Second) // a runs the first tick
				b := c.start("b", job)
				s.on.Store(true)
				time.Sleep(10 * time.Minute)
				if e, err := c.store.Read(t.Context(), "soloist/work"); err != nil || !json.Valid(e.Record) {
					t.Errorf("got %+v, %v", e, err)
				}
				if h := b.Health(); len(c.all()) < 4 || len(h.Broken) > 0 {
					t.Errorf("%d runs, health of b: %+v", len(c.all()), h)
				}
			})
		})
	}
}

// soon waits for d, or for the end of ctx.
func soon(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// The checkpoint of a save without an ETag is saved again.
func TestASaveWithoutAnETagIsRepeated(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var s *nameless
		a := c.replica("a", soloist.Job{Name: "work", Schedule: "@every 1m", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			s.on.Store(true)
			go func() { time.Sleep(3 * time.Second); s.on.Store(false) }()
			if err := run.Save(ctx, "where I was"); err != nil {
				return err
			}
			var got string
			if err := run.Load(ctx, &got); err != nil || got != "where I was" {
				t.Errorf("got %q, %v", got, err)
			}
			return nil
		}})
		s = c.nameless(a, "save")
		c.launch(a)
		time.Sleep(90 * time.Second)
		if got := c.outcomes("work"); len(got) != 1 || got[0] != "succeeded 00:01:00" {
			t.Errorf("got %q", got)
		}
	})
}
