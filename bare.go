package soloist

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// bareReplica returns the replica for locks that a program takes without a schedule. It shares the clocks
// of another replica, if given.
func bareReplica(app, name string, backend store.Store, of *runner.Replica) *runner.Replica {
	r := &runner.Replica{App: app, Name: name, Store: backend}
	if of != nil {
		r.Clock, r.Created = of.Clock, of.Created
		return r
	}
	wall := func() time.Time { return time.Now().Round(0) }
	r.Clock, r.Created = &lease.Clock{Wall: wall, Elapsed: elapsed.Now}, elapsed.Now()
	return r
}

// A replicaKey is the key of the context of a run; the value is the replica that runs it.
type replicaKey struct{}

// tellReplica has the runs of do know their replica.
func tellReplica(of *runner.Replica, do func(context.Context, *supervise.Handle) error) func(context.Context, *supervise.Handle) error {
	return func(ctx context.Context, h *supervise.Handle) error {
		return do(context.WithValue(ctx, replicaKey{}, of), h)
	}
}
