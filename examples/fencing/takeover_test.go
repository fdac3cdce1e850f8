package fencing_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/examples/fencing"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/store"
)

// resource is what two replicas write to.
type resource struct {
	write   func(token int64) error
	effects func(t *testing.T) []int64 // their tokens, in order
}

// TestTakeover cuts a replica off from the store. Its run goes on, whatever its
// context says, while the next replica runs.
func TestTakeover(t *testing.T) {
	for _, test := range []struct {
		name   string
		open   func(t *testing.T) resource
		fenced bool
	}{
		{"HTTP", func(t *testing.T) resource {
			r := openHTTP(t, fencing.Fence)
			return resource{r.write, r.effects}
		}, true},
		{"SQLite", func(t *testing.T) resource {
			db := openSQLite(t)
			return resource{db.fenced, db.effects}
		}, true},
		{"PostgreSQL", func(t *testing.T) resource {
			db := openPostgres(t)
			return resource{db.fenced, db.effects}
		}, true},
		{"row in PostgreSQL", func(t *testing.T) resource {
			db := openPostgres(t)
			return resource{db.saveReport, db.effects}
		}, true},
		{"blob", func(t *testing.T) resource {
			r := openBlob(t, azurite.Start(t), "takeover")
			return resource{r.write, r.effects}
		}, true},
		// Without a fence, stale effects are seen: so the test can see them.
		{"HTTP without a fence", func(t *testing.T) resource {
			r := openHTTP(t, func(next http.Handler) http.Handler { return next })
			return resource{r.write, r.effects}
		}, false},
		{"SQLite without a fence", func(t *testing.T) resource {
			db := openSQLite(t)
			return resource{db.unfenced, db.effects}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.open(t)
			takeover(t, r, test.fenced)
			got := r.effects(t)
			if n := stale(got); (n == 0) != test.fenced {
				t.Errorf("%d of %d effects are stale, fenced: %t", n, len(got), test.fenced)
			}
		})
	}
}

// attempts is how often the stale run writes after the new one has.
const attempts = 20

func takeover(t *testing.T, r resource, fenced bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var (
		backend  = new(local.Memory)
		cut      = &cable{Store: backend}
		led      = make(chan struct{}) // closed when the first run has written
		over     = make(chan struct{}) // closed when it is over
		taken    atomic.Bool           // the second run has written
		accepted atomic.Int64          // writes of the first run that began after that
	)
	first := func(run context.Context, me *soloist.Run) error {
		defer close(over)
		for n := 0; n < attempts && ctx.Err() == nil; {
			late := taken.Load()
			err := r.write(me.Token) // run is not asked: this is what makes it stale
			if err != nil && !errors.Is(err, fencing.ErrStale) {
				t.Errorf("first run: %v", err)
			}
			if late {
				n++
				if err == nil {
					accepted.Add(1)
				}
			}
			if !cut.off.Swap(true) {
				close(led)
			}
		}
		if cause := context.Cause(run); !errors.Is(cause, store.ErrLost) {
			t.Errorf("the context of the stale run: %v, want ErrLost", cause)
		}
		return nil
	}
	second := func(run context.Context, me *soloist.Run) error {
		for run.Err() == nil {
			if err := r.write(me.Token); err != nil {
				t.Errorf("second run: %v", err)
				return nil
			}
			taken.Store(true)
		}
		return nil
	}

	var replicas sync.WaitGroup
	run := func(backend store.Store, do func(context.Context, *soloist.Run) error) {
		replicas.Go(func() {
			s := &soloist.Scheduler{
				Store:      backend,
				Logger:     slog.New(slog.DiscardHandler),
				Singletons: []soloist.Singleton{{Name: "feed", Lease: time.Second, Do: do}},
			}
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	run(cut, first)
	wait(ctx, t, led, "the first run")
	run(backend, second)
	wait(ctx, t, over, "the end of the stale run")
	cancel()
	replicas.Wait()

	if n := accepted.Load(); (n == 0) != fenced {
		t.Errorf("%d of %d writes of the stale run were accepted, fenced: %t", n, attempts, fenced)
	}
}

func wait(ctx context.Context, t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-ctx.Done():
		t.Errorf("%s: %v", what, ctx.Err())
	}
}

// cable is a store that can be cut off.
type cable struct {
	store.Store
	off atomic.Bool
}

var errCut = errors.New("cut off")

func (c *cable) Read(ctx context.Context, name string) (store.Entry, error) {
	if c.off.Load() {
		return store.Entry{}, errCut
	}
	return c.Store.Read(ctx, name)
}

func (c *cable) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	if c.off.Load() {
		return store.Entry{}, errCut
	}
	return c.Store.Create(ctx, name, record)
}

func (c *cable) Lease(name, id string) store.Lease {
	return cableLease{c, c.Store.Lease(name, id)}
}

type cableLease struct {
	cable *cable
	lease store.Lease
}

func (l cableLease) do(f func() (store.Revision, error)) (store.Revision, error) {
	if l.cable.off.Load() {
		return store.Revision{}, errCut
	}
	return f()
}

func (l cableLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.do(func() (store.Revision, error) { return l.lease.Acquire(ctx, d, etag) })
}

func (l cableLease) Renew(ctx context.Context) (store.Revision, error) {
	return l.do(func() (store.Revision, error) { return l.lease.Renew(ctx) })
}

func (l cableLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.do(func() (store.Revision, error) { return l.lease.Write(ctx, etag, record) })
}

func (l cableLease) Release(ctx context.Context) error {
	_, err := l.do(func() (store.Revision, error) { return store.Revision{}, l.lease.Release(ctx) })
	return err
}
