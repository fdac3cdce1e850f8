package soloist

import (
	"slices"
	"sync"

	"github.com/soloist-go/soloist/internal/runner"
)

// A beside counts what is under way in addition to the jobs of a scheduler, in the same store, each by its
// own replica. Jobs that wait for it ask the store nothing, so their replica knows of no outage. Its
// methods may be called on nil.
type beside struct {
	mu      sync.Mutex
	all     []*runner.Replica
	reached bool // a replica that has left was answered
}

// enter notes that r is under way until leave is called.
func (b *beside) enter(r *runner.Replica) (leave func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, r)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reached = b.reached || r.Health().Reached
		i := slices.Index(b.all, r)
		b.all = slices.Delete(b.all, i, i+1)
	}
}

// storage returns why the store does not answer one of them, and whether it has ever answered.
func (b *beside) storage() (trouble error, reached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reached = b.reached
	for _, r := range b.all {
		h := r.Health()
		reached = reached || h.Reached
		if h.Storage != nil {
			trouble = h.Storage
		}
	}
	return trouble, reached
}
