// Package storetest checks whether a store keeps the contract of package store.
//
// That is the outcome of every call in every state of a lease, ETags, expiry, late
// and repeated calls, checkpoints, transactions, documents, listings, logs, and
// who wins when many want the same.
//
// A store's own test is a few lines:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, storetest.Harness{
//			New:     func(t *testing.T) store.Store { return new(local.Memory) },
//			Virtual: true,
//		})
//	}
//
// What is not shown: that the store survives a crash, what it does when a context
// ends in the middle of a call, and how its errors read; without
// [Harness.Two], that one process sees at once what another has written; and,
// unless the harness is Virtual, that a lease of more than ten seconds, or of
// twice the shortest, has its whole length: to wait for it takes too long.
package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Harness describes the store under test to the suite.
type Harness struct {
	// New returns the store, and cleans up after it with t.Cleanup. It is
	// called for each test, and once before, to see what the store can do. It
	// may return one store again and again, since no test uses a name that
	// another has used. Required.
	New func(t *testing.T) store.Store

	// Two returns two instances of the store over one place, as two processes
	// have them, and cleans up after them. A store that answers from a cache of
	// its own fails the tests that need it. Nil: those are not run, which suits
	// a store that lives in one process.
	Two func(t *testing.T) (one, other store.Store)

	// Virtual runs each test in a bubble of testing/synctest, where waiting
	// costs nothing; it suits a store whose clock is time.Now and that waits
	// for nothing outside the bubble but files. False: all tests run at once,
	// and take about twice the store's shortest lease, and ten seconds at least.
	Virtual bool

	// Put has a transaction of the store, if its leases are a [store.Transactor], keep an effect under a key, and Kept
	// returns how many are kept under it. Nil: transactions are not tested.
	Put  func(ctx context.Context, tx any, key string) error
	Kept func(ctx context.Context, key string) (int, error)

	// Differences are the tests that this store is known to fail, with the
	// reason. They are run anyway, and have to fail: a difference that is
	// gone, or that names no test, is an error, so that the list stays true.
	// Nil: none.
	Differences map[string]string
}

// patience bounds what one test may take, in the store's time: the longest
// lease, the minute that the service may take to release one, and room.
const patience = 10 * time.Minute

// Test runs the suite as subtests of t. In their names, own is the id that
// leased the entry first, and other is an id that did not.
func Test(t *testing.T, h Harness) {
	t.Helper()
	covered, missing := plan(h.powers(t))
	if len(missing) > 0 {
		t.Logf("not covered, because the store has no Break, no BreakUnchanged, no Delete, no Remove, no Save and Load, no AcquireWrite, no transactions, no documents, no List, no logs or no two lengths of leases, or the harness no Two: %s", strings.Join(missing, ", "))
	}
	for name := range h.Differences {
		if !slices.ContainsFunc(covered, func(p property) bool { return p.name == name }) {
			t.Errorf("difference %q is not a test, or not one that this store is given", name)
		}
	}
	for _, p := range covered {
		t.Run(p.name, func(t *testing.T) {
			reason, listed := h.Differences[p.name]
			if h.Virtual {
				synctest.Test(t, func(t *testing.T) { p.start(t, h).report(t, listed, reason) })
				return
			}
			// Start before Parallel, which limits how many run at once: most of
			// the tests only wait for a lease to end.
			c := p.start(t, h)
			t.Parallel()
			c.report(t, listed, reason)
		})
	}
}

// plan sorts the suite into what can be run with these powers and what cannot.
func plan(has need) (covered []property, missing []string) {
	for _, p := range suite() {
		if p.needs&^has == 0 {
			covered = append(covered, p)
		} else {
			missing = append(missing, p.name)
		}
	}
	return covered, missing
}

func (h Harness) powers(t *testing.T) (has need) {
	backend := h.New(t)
	shortest, longest := backend.Limits()
	for power, ok := range map[need]bool{
		twins:       h.Two != nil,
		lengths:     longest >= shortest*3/2,
		breaker:     is[store.LeaseBreaker](backend),
		conditional: is[store.ConditionalBreaker](backend),
		documenter:  is[store.Documenter](backend),
		lister:      is[store.Lister](backend),
		appender:    is[store.Appender](backend),
		remover:     is[store.Remover](backend),
		deleter:     is[Deleter](backend),
		keeper:      is[store.Checkpointer](backend.Lease(newName(), newID())),
		transactor:  is[store.Transactor](backend.Lease(newName(), newID())) && h.Put != nil && h.Kept != nil,
		combiner:    is[store.Combiner](backend.Lease(newName(), newID())),
	} {
		if ok {
			has |= power
		}
	}
	if has&(conditional|breaker) == conditional {
		t.Error("the store has BreakUnchanged and no Break: a ConditionalBreaker has to be a LeaseBreaker")
	}
	return has
}

func (p property) start(t *testing.T, h Harness) *check {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c := &check{ctx: ctx, effect: h.Put, effects: h.Kept, virtual: h.Virtual, done: make(chan struct{})}
	if p.needs&twins != 0 {
		c.store, c.other = h.Two(t)
	} else {
		c.store = h.New(t)
	}
	go func() {
		defer close(c.done) // also after Fatalf, which ends this goroutine
		p.body(c)
	}()
	return c
}

func suite() []property {
	over := []store.LeaseState{store.Available, store.Expired, store.Broken}
	return slices.Concat(outcomes(), contents(), calls(), lives, removals, unchanged, expiries, lates, races, records, keeps, combined, transactions,
		documents, lists, logs, pairs, each("Create/", nothing, again), each("Keep/", keeper, outlives), each("Remove/", remover, removed), each("List/", lister, listed),
		each("ETag/acquire-", nothing, conditions, over...), each("Late/", nothing, overtaken, over...),
		each("BreakUnchanged/changed-", conditional, spared, store.Leased, store.Breaking, store.Expired, store.Broken))
}

// A property is one test.
type property struct {
	name  string
	needs need
	body  func(c *check)
}

// need is a set of powers.
type need int

const (
	nothing need = 0
	breaker need = 1 << (iota - 1)
	conditional
	deleter
	remover
	keeper
	transactor // and of the harness
	combiner
	documenter
	lister
	appender
	twins   // of the harness
	lengths // of leases: two different ones
)

// Deleter is the power to remove an entry whose lease is free: otherwise
// store.ErrLost, and fs.ErrNotExist. Like [store.LeaseBreaker], [store.ConditionalBreaker], [store.Documenter],
// [store.Lister], [store.Appender], [store.Remover], and [store.Checkpointer] and [store.Combiner] of its leases, it is
// tested in a store that has it; otherwise the tests that need it are logged as not covered. A [store.ConditionalBreaker] that is no
// [store.LeaseBreaker] fails.
type Deleter interface {
	Delete(ctx context.Context, name string) error
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
