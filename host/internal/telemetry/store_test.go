package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// A store that is counted does what it does uncounted.
func TestCountedStoreKeepsTheContract(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New: func(t *testing.T) store.Store {
			s := program()
			backend := s.Store.(store.Appender)
			logs := open(t, s).Logs(backend)
			return withLogs{s.Store, s.Store.(breaks), s.Store.(store.Documenter), s.Store.(store.Lister), logs}
		},
		Virtual: true,
	})
}

// withLogs is a counted store and its logs.
type withLogs struct {
	store.Store
	breaks
	store.Documenter
	store.Lister
	store.Appender
}

type breaks interface {
	store.LeaseBreaker
	store.ConditionalBreaker
}

// Calls to logs are counted as others are. A store without logs has none when it is counted.
func TestLogCallsAreCounted(t *testing.T) {
	s := program()
	backend := s.Store.(store.Appender)
	m := open(t, s)
	logs, ctx, name := m.Logs(backend), t.Context(), store.LogName("demo/report", "1")
	if err := logs.Append(ctx, name, 0, []byte("line")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := logs.Append(ctx, name, 0, []byte("late")); !errors.Is(err, store.ErrChanged) {
			t.Errorf("got %v, want %v", err, store.ErrChanged)
		}
	}
	if b, err := logs.ReadLog(ctx, name, 1, 2); err != nil || string(b) != "in" {
		t.Errorf("got %q, %v", b, err)
	}
	if err := logs.Logs(ctx, "demo/report", func(string, int64) bool { return true }); err != nil {
		t.Error(err)
	}
	if err := logs.RemoveLog(ctx, name); err != nil {
		t.Error(err)
	}
	var want []string
	for labels, n := range map[string]int{`"append",result="ok"`: 1, `"append",result="refused"`: 2, `"read-log",result="ok"`: 1, `"list-logs",result="ok"`: 1, `"remove-log",result="ok"`: 1} {
		want = append(want, fmt.Sprintf("soloist_storage_call_duration_seconds_count{operation=%s} %d", labels, n))
	}
	wantLines(t, scrape(t, m), want)
	if m.Logs(nil) != nil {
		t.Error("a store without logs has some")
	}
}

type (
	breaker     struct{}
	conditional struct{ breaker }
	documenter  struct{}
	lister      struct{}
	keeper      struct{ store.Lease }
)

func (breaker) Break(context.Context, string, time.Duration) error { return errBreak }
func (conditional) BreakUnchanged(context.Context, string, string) error {
	return errUnchanged
}
func (documenter) ReadDocument(context.Context, string, string) (store.Document, error) {
	return store.Document{}, store.ErrUnchanged
}
func (documenter) WriteDocument(context.Context, string, string, []byte) (store.Revision, error) {
	return store.Revision{}, store.ErrChanged
}
func (lister) List(_ context.Context, _ string, f func(string, store.Entry) bool) error {
	f("demo/report", store.Entry{})
	return nil
}
func (keeper) Save(context.Context, string, []byte, []byte) (store.Revision, error) {
	return store.Revision{}, nil
}
func (keeper) Load(context.Context, string) ([]byte, error) { return []byte("kept"), nil }

var errBreak, errUnchanged = errors.New("as the store says"), errors.New("as the store says under a condition")

// plain is a store with the methods that each store has. Its leases have no checkpoints.
type plain struct{ store.Store }

// keeping is one whose leases have checkpoints.
type keeping struct{ store.Store }

type lease struct{ store.Lease }

func (p plain) Lease(name, id string) store.Lease   { return lease{p.Store.Lease(name, id)} }
func (k keeping) Lease(name, id string) store.Lease { return keeper{k.Store.Lease(name, id)} }

// The scheduler asks a store what it can do. A counted store gives the same answers, and
// each method reaches that of the store.
func TestCountedStoreHasTheSameInterfaces(t *testing.T) {
	type s = store.Store
	base := plain{&local.Memory{}}
	for i, backend := range []store.Store{
		base,
		struct {
			s
			documenter
		}{s: base},
		struct {
			s
			lister
		}{s: base},
		struct {
			s
			documenter
			lister
		}{s: base},
		struct {
			s
			breaker
		}{s: base},
		struct {
			s
			breaker
			documenter
		}{s: base},
		struct {
			s
			breaker
			lister
		}{s: base},
		struct {
			s
			breaker
			documenter
			lister
		}{s: base},
		struct {
			s
			conditional
		}{s: base},
		struct {
			s
			conditional
			documenter
		}{s: base},
		struct {
			s
			conditional
			lister
		}{s: base},
		struct {
			s
			conditional
			documenter
			lister
		}{s: base},
		keeping{&local.Memory{}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { sameInterfaces(t, backend) })
	}
}

func sameInterfaces(t *testing.T, backend store.Store) {
	scheduler := program()
	scheduler.Store = backend
	open(t, scheduler)
	got, ctx := scheduler.Store, t.Context()
	b, breaks := got.(store.LeaseBreaker)
	if _, want := backend.(store.LeaseBreaker); breaks != want || breaks && !errors.Is(b.Break(ctx, "demo/report", 0), errBreak) {
		t.Errorf("LeaseBreaker: got %t, want %t", breaks, want)
	}
	u, ok := got.(store.ConditionalBreaker)
	if _, want := backend.(store.ConditionalBreaker); ok != want || ok && !errors.Is(u.BreakUnchanged(ctx, "demo/report", "1"), errUnchanged) {
		t.Errorf("ConditionalBreaker: got %t, want %t", ok, want)
	}
	d, documents := got.(store.Documenter)
	if _, want := backend.(store.Documenter); documents != want {
		t.Errorf("Documenter: got %t, want %t", documents, want)
	}
	if documents {
		if _, err := d.ReadDocument(ctx, "demo/.control", "1"); !errors.Is(err, store.ErrUnchanged) {
			t.Errorf("ReadDocument: got %v", err)
		}
		if _, err := d.WriteDocument(ctx, "demo/.control", "1", nil); !errors.Is(err, store.ErrChanged) {
			t.Errorf("WriteDocument: got %v", err)
		}
	}
	l, lists := got.(store.Lister)
	if _, want := backend.(store.Lister); lists != want {
		t.Errorf("Lister: got %t, want %t", lists, want)
	}
	var names []string
	if lists && (l.List(ctx, "demo", func(name string, _ store.Entry) bool { names = append(names, name); return true }) != nil || len(names) != 1) {
		t.Errorf("List: got %q", names)
	}
	k, keeps := got.Lease("demo/report", "id").(store.Checkpointer)
	if _, want := backend.Lease("demo/report", "id").(store.Checkpointer); keeps != want {
		t.Errorf("Checkpointer: got %t, want %t", keeps, want)
	}
	if keeps {
		if b, err := k.Load(ctx, ""); err != nil || string(b) != "kept" {
			t.Errorf("Load: got %q, %v", b, err)
		}
	}
	gotShort, gotLong := got.Limits()
	if short, long := backend.Limits(); gotShort != short || gotLong != long {
		t.Errorf("Limits: got %s and %s, want %s and %s", gotShort, gotLong, short, long)
	}
}

// failing answers each read with its error.
type failing struct {
	store.Store
	err error
}

func (f failing) Read(context.Context, string) (store.Entry, error) { return store.Entry{}, f.err }

// A refusal that the protocol is built on is no error, and the text of an error is no label.
func TestCallsAreCountedByResult(t *testing.T) {
	for word, err := range map[string]error{
		"ok":        nil,
		"refused":   fmt.Errorf("409: %w", store.ErrHeld),
		"missing":   fs.ErrNotExist,
		"unchanged": store.ErrUnchanged,
		"denied":    fs.ErrPermission,
		"timeout":   fmt.Errorf("calling: %w", context.DeadlineExceeded),
		"cancelled": context.Canceled,
		"error":     errors.New("Get https://account.blob.core.windows.net/c?sig=secret: EOF"),
	} {
		s := program()
		s.Store = failing{&local.Memory{}, err}
		m := open(t, s)
		if _, got := s.Store.Read(t.Context(), "demo/report"); got != err {
			t.Errorf("got %v, want %v", got, err)
		}
		wantLines(t, scrape(t, m), []string{`soloist_storage_call_duration_seconds_count{operation="read",result="` + word + `"} 1`})
	}
}
