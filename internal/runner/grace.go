package runner

import (
	"context"
	"time"
)

// grace returns how long a run may go on after a stop. A singleton's task has no end
// to wait for. It goes on until the others have read that it stops, so that one of them
// takes over at once, and no longer.
func (r *Runner) grace() time.Duration {
	if r.Singleton() {
		return min(r.replica.Grace, r.approach())
	}
	return r.replica.Grace
}

// alone returns what says, at a stop, that the grace is not needed; nil: it is. A job goes on
// to its own end, and not until others are near.
func (r *Runner) alone() func(context.Context) bool {
	if r.Singleton() {
		return r.replica.Alone
	}
	return nil
}
