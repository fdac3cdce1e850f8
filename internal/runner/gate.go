package runner

import (
	"context"
	"sync"
	"time"
)

const (
	// gateRoom is how many reads, creations and acquisitions of a replica are under way at once.
	// A thousand at the same moment make the store answer each of them so late that some run
	// out of their time, and their ticks with them.
	gateRoom = 64

	// gateTime is how long a call counts. A call that hangs, of a job whose entry hangs, makes no
	// other job wait for longer.
	gateTime = time.Second
)

// A gate bounds the calls by which the jobs of a replica begin something. They pass in the order
// in which they come. What follows an acquisition never waits here: the claim, the outcome, and
// above all renewals and the release.
type gate struct{ room chan struct{} }

func newGate() gate { return gate{make(chan struct{}, gateRoom)} }

// pass waits until there is room, or ctx ends. The caller calls done after its call.
func (g gate) pass(ctx context.Context) (done func()) {
	select {
	case g.room <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	leave := sync.OnceFunc(func() { <-g.room })
	late := time.AfterFunc(gateTime, leave)
	return func() {
		late.Stop()
		leave()
	}
}
