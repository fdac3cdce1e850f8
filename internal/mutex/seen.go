package mutex

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A seen is what the calls of this process know of the slots. A call that waits for another one of its
// process does not look at the store, so this is all that it can say when its wait ends.
type seen struct {
	elapsed func() time.Duration
	length  time.Duration // of a lease: an older look says nothing of who has the lock now

	works atomic.Int64 // calls of this process whose work has begun and has not returned

	mu   sync.Mutex
	held bool          // the last look has seen a holder
	at   time.Duration // elapsed time of that
}

// begin notes that work begins. The caller calls end once it has returned.
func (s *seen) begin() (end func()) {
	s.works.Add(1)
	return func() { s.works.Add(-1) }
}

// look notes whether a look has seen a holder. A look that the caller's context has ended may be partial.
func (s *seen) look(held, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held || whole {
		s.held, s.at = held, s.elapsed()
	}
}

// why returns why a call waits for others of its process: they have the lock or wait for its holder, or
// they only try, because the store does not answer, or because a slot cannot be used yet.
func (s *seen) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.works.Load() > 0 || s.held && s.elapsed()-s.at < s.length {
		return store.ErrHeld
	}
	return runner.ErrTrying
}
