package telemetry

import (
	"fmt"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// abilities says which of its optional interfaces a store has.
func abilities(s store.Store) string {
	_, breaks := s.(store.LeaseBreaker)
	_, conditional := s.(store.ConditionalBreaker)
	_, documents := s.(store.Documenter)
	_, lists := s.(store.Lister)
	l := s.Lease("demo/report", "id")
	_, keeps := l.(store.Checkpointer)
	_, combines := l.(store.Combiner)
	_, transacts := l.(store.Transactor)
	return fmt.Sprint(breaks, conditional, documents, lists, keeps, combines, transacts)
}

// The scheduler asks a store what it can do. A counted store gives the same answers.
func TestCountedStoreHasTheSameInterfaces(t *testing.T) {
	to := &Telemetry{}
	for i := range 12 {
		c := newCountedStore(&local.Memory{}, to)
		conditional, documents, lists := i >= 8, i&1 != 0, i&2 != 0
		breaks := conditional || i&4 != 0
		if !breaks {
			c.breaker = nil
		}
		if !conditional {
			c.conditional = nil
		}
		if !documents {
			c.documenter = nil
		}
		if !lists {
			c.lister = nil
		}
		if got, want := abilities(c.shown()), fmt.Sprint(breaks, conditional, documents, lists, true, true, false); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, l := range []store.Lease{
		struct{ store.Lease }{},
		struct {
			store.Lease
			store.Checkpointer
		}{},
		struct {
			store.Lease
			store.Combiner
		}{},
		struct {
			store.Lease
			store.Transactor
		}{},
	} {
		s := leasing{&local.Memory{}, l}
		if got, want := abilities(counted(s, to)), abilities(s); got != want {
			t.Errorf("%T: got %s, want %s", l, got, want)
		}
	}
}

// leasing is a store with the methods that each store has, and a lease.
type leasing struct {
	store.Store
	lease store.Lease
}

func (l leasing) Lease(string, string) store.Lease { return l.lease }
