package sim_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// wrong is a store of which one thing is wrong.
type wrong struct {
	*local.Memory
	read  func(*store.Entry) // what Read tells
	list  func(*store.Entry) // what List tells, nothing of an entry without an ETag
	lease func(*leased) store.Lease

	mu     sync.Mutex
	holder map[string]string // by name: the id that acquired last
}

func (w *wrong) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := w.Memory.Read(ctx, name)
	if w.read != nil && err == nil {
		w.read(&e)
	}
	return e, err
}

func (w *wrong) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return w.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		if w.list != nil {
			w.list(&e)
		}
		return e.ETag == "" || f(name, e)
	})
}

func (w *wrong) Lease(name, id string) store.Lease {
	l := &leased{w.Memory.Lease(name, id), w, name, id}
	if w.lease == nil {
		return l
	}
	return w.lease(l)
}

// leased is right, and knows who holds the entry, and its ETag.
type leased struct {
	store.Lease
	store    *wrong
	name, id string
}

func (l *leased) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	st, err := l.Lease.Acquire(ctx, d, etag)
	if l.store.mu.Lock(); err == nil {
		l.store.holder[l.name] = l.id
	}
	l.store.mu.Unlock()
	return st, err
}

func (l *leased) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return l.Lease.(store.Checkpointer).Save(ctx, etag, record, checkpoint)
}

func (l *leased) Load(ctx context.Context, etag string) ([]byte, error) {
	return l.Lease.(store.Checkpointer).Load(ctx, etag)
}

// present is the lease of whoever holds it, and the ETag.
func (l *leased) present(ctx context.Context) (store.Lease, string) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	e, _ := l.store.Memory.Read(ctx, l.name)
	return l.store.Memory.Lease(l.name, l.store.holder[l.name]), e.ETag
}

type (
	acquiresAnyway struct{ *leased }
	writesOver     struct{ *leased }
	writesForAny   struct{ *leased }
	renewsForAny   struct{ *leased }
	releasesForAny struct{ *leased }
	loadsNothing   struct{ *leased }
	keepsETag      struct{ *leased }
	isUnclear      struct{ *leased }
)

func (l acquiresAnyway) Acquire(ctx context.Context, d time.Duration, _ string) (store.Revision, error) {
	_, etag := l.present(ctx)
	return l.leased.Acquire(ctx, d, etag)
}

func (l writesOver) Write(ctx context.Context, _ string, record []byte) (store.Revision, error) {
	_, etag := l.present(ctx)
	return l.leased.Write(ctx, etag, record)
}

func (l writesForAny) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	holder, _ := l.present(ctx)
	st, err := holder.Write(ctx, etag, record)
	if errors.Is(err, store.ErrLost) { // nobody has it: so much the better
		free := l.store.Memory.Lease(l.name, "00000000-0000-4000-8000-000000000000")
		if st, err = free.Acquire(ctx, time.Minute, etag); err == nil {
			st, err = free.Write(ctx, etag, record)
			_ = free.Release(ctx)
		}
	}
	return st, err
}

func (l renewsForAny) Renew(ctx context.Context) (store.Revision, error) {
	holder, _ := l.present(ctx)
	return holder.Renew(ctx)
}

func (l releasesForAny) Release(ctx context.Context) error {
	holder, _ := l.present(ctx)
	return holder.Release(ctx)
}

func (l loadsNothing) Load(ctx context.Context, etag string) ([]byte, error) {
	_, err := l.leased.Load(ctx, etag)
	return nil, err
}

func (l keepsETag) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	st, err := l.leased.Write(ctx, etag, record)
	if err == nil {
		st.ETag = etag
	}
	return st, err
}

func (l isUnclear) Renew(context.Context) (store.Revision, error) {
	return store.Revision{}, errors.New("try again")
}

func onLease(f func(*leased) store.Lease) *wrong {
	return &wrong{Memory: new(local.Memory), lease: f, holder: map[string]string{}}
}

func onRead(f func(*store.Entry)) *wrong {
	return &wrong{Memory: new(local.Memory), read: f, holder: map[string]string{}}
}

func onList(f func(*store.Entry)) *wrong {
	return &wrong{Memory: new(local.Memory), list: f, holder: map[string]string{}}
}

// fast is a clock by which leases end early.
func fast() func() time.Time {
	start := time.Now()
	return func() time.Time { return time.Now().Add(time.Since(start) / 10) }
}

// troubled simulates a network over which calls of old holders come, also some
// with the ETag in force, and returns what is wrong. Not each seed has such a call.
func troubled(t *testing.T, seed uint64, backend store.Store) (bad []trace.Violation) {
	far := time.Now().Add(1e5 * time.Hour)
	synctest.Test(t, func(*testing.T) {
		l, _ := sim.Simulate(sim.Config{Seed: seed, Length: 5 * time.Minute, Store: backend, NetworkFaults: []sim.NetworkFault{
			{To: far, Slot: -1, Share: 0.1, Fault: trace.Late},
			{To: far, Slot: -1, Share: 0.3, Fault: trace.Slow},
			{To: far, Slot: -1, Share: 0.05},
		}})
		bad = judge.Judge(l)
	})
	return bad
}

// The contract checker sees each thing that is wrong, and nothing if nothing is.
func TestContractChecker(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 18 to 32 clusters: run it without -short")
	}
	for name, one := range map[string]struct {
		store func() store.Store
		says  string // empty: nothing
	}{
		"nothing":               {func() store.Store { return onLease(nil) }, ""},
		"no Date":               {func() store.Store { return onRead(func(e *store.Entry) { e.Date = time.Time{} }) }, ""},
		"Acquire, any ETag":     {func() store.Store { return onLease(func(l *leased) store.Lease { return acquiresAnyway{l} }) }, "acquire of"},
		"Write, any ETag":       {func() store.Store { return onLease(func(l *leased) store.Lease { return writesOver{l} }) }, "it answers <nil>"},
		"Write, any id":         {func() store.Store { return onLease(func(l *leased) store.Lease { return writesForAny{l} }) }, "it answers <nil>"},
		"Renew, any id":         {func() store.Store { return onLease(func(l *leased) store.Lease { return renewsForAny{l} }) }, "renew of"},
		"Release, any id":       {func() store.Store { return onLease(func(l *leased) store.Lease { return releasesForAny{l} }) }, "release of"},
		"Load":                  {func() store.Store { return onLease(func(l *leased) store.Lease { return loadsNothing{l} }) }, "it tells the checkpoint"},
		"ETag of a write":       {func() store.Store { return onLease(func(l *leased) store.Lease { return keepsETag{l} }) }, "which is not new"},
		"an unclear answer":     {func() store.Store { return onLease(func(l *leased) store.Lease { return isUnclear{l} }) }, "try again"},
		"Date in the past":      {func() store.Store { return onRead(func(e *store.Entry) { e.Date = e.Date.Add(-2 * time.Second) }) }, "it tells the Date"},
		"Date in the future":    {func() store.Store { return onRead(func(e *store.Entry) { e.Date = e.Date.Add(time.Second) }) }, "it tells the Date"},
		"state of a lease":      {func() store.Store { return onRead(func(e *store.Entry) { e.State = store.Available }) }, "it tells available, want leased"},
		"ETag of a read":        {func() store.Store { return onRead(func(e *store.Entry) { e.ETag += "x" }) }, "it tells the ETag"},
		"listing that is empty": {func() store.Store { return onList(func(e *store.Entry) { e.ETag = "" }) }, "it lists []"},
		"ETag of a listing":     {func() store.Store { return onList(func(e *store.Entry) { e.ETag += "x" }) }, "it tells the ETag"},
		"record of a listing":   {func() store.Store { return onList(func(e *store.Entry) { e.Record = append(e.Record, ' ') }) }, "it tells the record"},
		"record of a read":      {func() store.Store { return onRead(func(e *store.Entry) { e.Record = append(e.Record, ' ') }) }, "it tells the record"},
		"leases that end early": {func() store.Store { return &local.Memory{Now: fast()} }, "want leased"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := false
			var bad []trace.Violation
			for _, seed := range []uint64{7, 10} {
				for _, v := range troubled(t, seed, one.store()) {
					told = told || v.Invariant == "S0 contract" && strings.Contains(v.Text, one.says)
					bad = append(bad, v)
				}
				if told && one.says != "" {
					return
				}
			}
			if one.says != "" || bad != nil {
				t.Errorf("the judge should say of the contract %q: %.400v", one.says, bad)
			}
		})
	}
}
