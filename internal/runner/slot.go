package runner

import (
	"context"
	"fmt"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A Group limits how many runs of several jobs take place at a time, over all replicas.
type Group interface {
	// Do calls f once a slot of the group is free. The context of f ends when the slot is lost.
	// store.ErrHeld: no slot was free until ctx ended.
	Do(ctx context.Context, f func(slot context.Context)) error
}

// A slot is what a call has of the group of its job.
type slot struct {
	held context.Context // ends when the slot is lost; nil: the call has none
	none bool            // nothing is to be run, so that no slot is needed: ticks are only settled
	full error           // why the call got no slot; nil: it did not ask, or got one
}

// bind ends the trust in a lease when the slot of its run is lost, until done is called.
func (s *slot) bind(l *lease.Session) (done func()) {
	if s.held == nil {
		return func() {}
	}
	undo := context.AfterFunc(s.held, func() {
		l.Lose(fmt.Errorf("%w: that of the slot of its group", store.ErrLost))
	})
	return func() { undo() }
}
