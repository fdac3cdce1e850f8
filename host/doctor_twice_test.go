package host_test

import (
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
		both := host.Program{Work: work(), Store: newGated(dir, func(_, name string) error {
			if !strings.Contains(name, "/.doctor") {
				return nil // not doctor's own entry
			}
			if calls++; calls == n {
				fired = true
				if got := run(t.Context(), calm, "doctor"); got.code != 0 {
					t.Errorf("before call %d of another: got %+v", n, got)
				}
			}
			return nil
		})}
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
