package soloist

import (
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// bareReplica returns the replica of what a program takes without a schedule. The clocks are those of
// the replica of a scheduler, if there is one.
func bareReplica(app, name string, backend store.Store, of *runner.Replica) *runner.Replica {
	r := &runner.Replica{App: app, Name: name, Store: backend}
	if of != nil {
		r.Wall, r.Clock, r.Created = of.Wall, of.Clock, of.Created
		return r
	}
	r.Wall = func() time.Time { return time.Now().Round(0) }
	r.Clock, r.Created = &lease.Clock{Wall: r.Wall, Elapsed: elapsed.Now}, elapsed.Now()
	return r
}
