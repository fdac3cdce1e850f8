package fencing_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
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

// TestTakeover cuts a replica off from the store. Its run goes on, whatever its
// context says, while the next replica runs.
func TestTakeover(t *testing.T) {
	for _, test := range []struct {
		name   string
		open   func(t *testing.T) resource
		fenced bool
	}{
		{"HTTP", func(t *testing.T) resource { return openHTTP(t, fencing.Fence).resource() }, true},
		{"SQLite", func(t *testing.T) resource { return openSQLite(t).by(database.fenced) }, true},
		{"PostgreSQL", func(t *testing.T) resource { return openPostgres(t).by(database.fenced) }, true},
		{"row in PostgreSQL", func(t *testing.T) resource { return openPostgres(t).by(database.saveReport) }, true},
		{"blob", func(t *testing.T) resource { return openBlob(t, azurite.Start(t), "takeover").resource() }, true},
		// Without a fence, stale effects are seen: so the test can see them.
		{"HTTP without a fence", func(t *testing.T) resource {
			return openHTTP(t, func(next http.Handler) http.Handler { return next }).resource()
		}, false},
		{"SQLite without a fence", func(t *testing.T) resource { return openSQLite(t).by(database.unfenced) }, false},
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
	cut, whole, sever := severable(t)
	var (
		led      = make(chan struct{}) // closed when the first run has written, and is cut off
		over     = make(chan struct{}) // closed when it is over
		taken    atomic.Bool           // the second run has written
		accepted atomic.Int64          // writes of the first run that began after that
	)
	lead := sync.OnceFunc(func() {
		sever()
		close(led)
	})
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
			lead()
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
	run(whole, second)
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

// severable opens one store by two paths, of which sever cuts off the first.
func severable(t *testing.T) (cut, whole store.Store, sever func()) {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	link := file + ".link"
	if err := errors.Join(os.Symlink(dir, link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return local.Dir{Path: link}, local.Dir{Path: dir}, func() {
		if err := os.Rename(file, link); err != nil { // no directory: each call fails
			t.Error(err)
		}
	}
}
