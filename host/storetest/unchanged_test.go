package storetest_test

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// A breaker is a Memory whose BreakUnchanged has a fault.
type breaker struct {
	*local.Memory
	fault func(ctx context.Context, m *local.Memory, name, etag string) error
}

func (b breaker) BreakUnchanged(ctx context.Context, name, etag string) error {
	return b.fault(ctx, b.Memory, name, etag)
}

func breakers(fault func(ctx context.Context, m *local.Memory, name, etag string) error) storetest.Harness {
	return virtual(func() store.Store { return breaker{new(local.Memory), fault} })
}

// breaksAny asks for no ETag.
func breaksAny(ctx context.Context, m *local.Memory, name, _ string) error {
	return m.Break(ctx, name, 0)
}

// breaksNone says that it did.
func breaksNone(context.Context, *local.Memory, string, string) error { return nil }

// comparesFirst looks at the ETag, and then breaks the lease of whatever is there.
func comparesFirst(ctx context.Context, m *local.Memory, name, etag string) error {
	if e, err := m.Read(ctx, name); err != nil || e.ETag != etag {
		return m.BreakUnchanged(ctx, name, etag)
	}
	time.Sleep(time.Millisecond)
	return m.Break(ctx, name, 0)
}

// breaksLive refuses what has ended by itself or by an earlier break.
func breaksLive(ctx context.Context, m *local.Memory, name, etag string) error {
	if e, err := m.Read(ctx, name); err == nil && e.ETag == etag && !e.State.Live() {
		return store.ErrLost
	}
	return m.BreakUnchanged(ctx, name, etag)
}

// rejoins lets the holder whose lease was broken save.
type rejoins struct{ *lease }

func (l rejoins) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if e, err := l.store.Read(ctx, l.name); err == nil && e.State == store.Broken && e.ETag == etag {
		_, _ = l.Acquire(ctx, local.Shortest, etag)
	}
	return l.lease.Save(ctx, etag, record, checkpoint)
}

// recollects compares with the ETag that this instance has read or told last.
type recollects struct {
	*local.Memory
	seen *sync.Map // ETags by name
}

func (r recollects) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := r.Memory.Read(ctx, name)
	if _, known := r.seen.Load(name); err == nil && !known {
		r.seen.Store(name, e.ETag)
	}
	return e, err
}

func (r recollects) BreakUnchanged(ctx context.Context, name, etag string) error {
	if seen, known := r.seen.Load(name); known && seen == etag {
		return r.Break(ctx, name, 0)
	}
	return r.Memory.BreakUnchanged(ctx, name, etag)
}

// half has a conditional break and no other.
type half struct {
	store.Store
	store.ConditionalBreaker
}

var unchangedSuites = map[string]suite{
	"a conditional break has no condition": {harness: breakers(breaksAny),
		fails: "BreakUnchanged/changed BreakUnchanged/changed-breaking BreakUnchanged/changed-expired BreakUnchanged/anew " +
			"BreakUnchanged/late BreakUnchanged/race BreakUnchanged/no-etag",
		passes: "Outcome/leased/break-unchanged BreakUnchanged/successor BreakUnchanged/repeated BreakUnchanged/missing"},
	"a conditional break does nothing": {harness: breakers(breaksNone),
		fails: "Outcome/leased/break-unchanged Outcome/expired/break-unchanged BreakUnchanged/successor BreakUnchanged/save " +
			"BreakUnchanged/repeated BreakUnchanged/missing BreakUnchanged/race BreakUnchanged/context",
		passes: "Outcome/broken/break-unchanged"},
	"a conditional break looks first": {harness: breakers(comparesFirst),
		fails: "BreakUnchanged/race", passes: "BreakUnchanged/changed BreakUnchanged/successor BreakUnchanged/late BreakUnchanged/context"},
	"a lease is broken but once": {harness: breakers(breaksLive),
		fails:  "Outcome/broken/break-unchanged Outcome/expired/break-unchanged BreakUnchanged/repeated",
		passes: "Outcome/leased/break-unchanged Outcome/breaking/break-unchanged BreakUnchanged/late"},
	"a broken holder saves": {harness: leases[rejoins](),
		fails: "BreakUnchanged/save", passes: "BreakUnchanged/successor"},
	"a conditional break ignores contexts": {harness: memory[deaf](),
		fails: "BreakUnchanged/context", passes: "BreakUnchanged/changed"},
	"an instance compares the ETag that it remembers": {harness: twoOf(func(m *local.Memory) store.Store { return recollects{m, new(sync.Map)} }),
		fails: "BreakUnchanged/twins", passes: "Twins/record Twins/lease"},
	"the break is conditional only": {harness: virtual(func() store.Store { m := new(local.Memory); return half{m, m} }),
		passes: "Create/entry", says: "a ConditionalBreaker has to be a LeaseBreaker"},
}

func init() { maps.Copy(suites, unchangedSuites) }
