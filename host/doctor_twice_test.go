package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Whenever a second doctor comes, both find that all is well.
func TestDoctorBesideAnother(t *testing.T) {
	environment(t)
	fired := true
	for n := 1; fired; n++ {
		dir := local.Dir{Path: t.TempDir()}
		calm := host.Program{Work: work(), Store: dir}
		calls := 0
		fired = false
		both := host.Program{Work: work(), Store: beforeScratch{dir, func() {
			if calls++; calls != n {
				return
			}
			fired = true
			if got := run(t.Context(), calm, "doctor"); got.code != 0 {
				t.Errorf("before call %d of another: got %+v", n, got)
			}
		}}}
		if got := run(t.Context(), both, "doctor"); got.code != 0 || strings.Contains(got.out, "FAIL") {
			t.Errorf("with another before call %d: got %+v", n, got)
		}
		if files, err := filepath.Glob(filepath.Join(dir.Path, "demo", "*")); err != nil || len(files) > 4 {
			t.Errorf("with another before call %d: %q are left, %v", n, files, err)
		}
		if n > 100 {
			t.Fatal("no end of calls")
		}
	}
}

// A killed doctor keeps its entry leased for a while. Where each entry is leased,
// doctor fails and says so.
func TestDoctorBesideTooMany(t *testing.T) {
	environment(t)
	backend := local.Dir{Path: t.TempDir()}
	p := host.Program{Work: work(), Store: backend}
	for n := range 9 {
		if got := run(t.Context(), p, "doctor"); got.code != 0 {
			t.Fatalf("beside %d others: got %+v", n, got)
		}
		name := "demo/.doctor"
		if n > 0 {
			name = fmt.Sprintf("demo/.doctor-%d", n+1)
		}
		e, err := backend.Read(t.Context(), name)
		if err == nil {
			_, err = backend.Lease(name, newUUID()).Acquire(t.Context(), time.Minute, e.ETag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := run(t.Context(), p, "doctor")
	if got.code != 1 || !strings.Contains(got.out, "FAIL  acquire") || !strings.Contains(got.out, store.ErrHeld.Error()) {
		t.Errorf("got %+v", got)
	}
}

// beforeScratch is a store whose calls for doctor's own entries come after f.
type beforeScratch struct {
	store.Store
	f func()
}

func (s beforeScratch) on(name string) {
	if strings.Contains(name, "/.doctor") {
		s.f()
	}
}

func (s beforeScratch) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	s.on(name)
	return s.Store.Create(ctx, name, record)
}

func (s beforeScratch) Read(ctx context.Context, name string) (store.Entry, error) {
	s.on(name)
	return s.Store.Read(ctx, name)
}

func (s beforeScratch) Lease(name, id string) store.Lease {
	l := s.Store.Lease(name, id)
	return beforeLease{l, l.(store.Checkpointer), func() { s.on(name) }}
}

type beforeLease struct {
	store.Lease
	keeper store.Checkpointer
	f      func()
}

func (l beforeLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	l.f()
	return l.Lease.Acquire(ctx, d, etag)
}

func (l beforeLease) Renew(ctx context.Context) (store.Revision, error) {
	l.f()
	return l.Lease.Renew(ctx)
}

func (l beforeLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	l.f()
	return l.Lease.Write(ctx, etag, record)
}

func (l beforeLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	l.f()
	return l.keeper.Save(ctx, etag, record, checkpoint)
}

func (l beforeLease) Load(ctx context.Context, etag string) ([]byte, error) {
	l.f()
	return l.keeper.Load(ctx, etag)
}

func (l beforeLease) Release(ctx context.Context) error {
	l.f()
	return l.Lease.Release(ctx)
}
