package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A Group limits how many runs of several jobs take place at a time, over all replicas.
type Group interface {
	// Do calls f once a slot of the group is free. The context of f ends when the slot is lost, or
	// when ctx ends. store.ErrHeld: no slot was free within patience, or until ctx ended. Of a store
	// that fails it returns the error at once.
	Do(ctx context.Context, patience time.Duration, f func(slot context.Context)) error
}

// A slot is what a call has of the group of its job.
type slot struct {
	held context.Context // ends when the slot is lost; nil: the call has none
	over chan struct{}   // closed when the slot is needed no more; nil: the call has none
	once *sync.Once
	none bool  // nothing is to be run, so that no slot is needed: ticks are only settled
	full error // why the call got no slot; nil: it did not ask, or got one
}

// errSlotLost ends the trust in the lease of a run whose slot is lost. The lease itself is still held.
var errSlotLost = fmt.Errorf("%w: that of the slot of its group", store.ErrLost)

// newSlot returns a slot that is held until free is called.
func newSlot(held context.Context) slot {
	return slot{held: held, over: make(chan struct{}), once: &sync.Once{}}
}

// free gives the slot back: the run is over, and what follows is about its own entry alone. It may be
// called again.
func (s *slot) free() {
	if s.over != nil {
		s.once.Do(func() { close(s.over) })
	}
}

// bind ends the trust in a lease when the slot of its run is lost, until done is called.
func (s *slot) bind(l *lease.Session) (done func()) {
	if s.held == nil || s.over == nil {
		return func() {}
	}
	if s.held.Err() != nil { // lost while the lease was acquired
		l.Lose(errSlotLost)
		return func() {}
	}
	over := s.over
	undo := context.AfterFunc(s.held, func() {
		select {
		case <-over:
		default:
			l.Lose(errSlotLost)
		}
	})
	return func() { undo() }
}
