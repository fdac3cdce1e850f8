package runner

import (
	"time"

	"github.com/soloist-go/soloist/internal/plan"
)

// A Seat says whether this replica may hold a shard of a singleton, so that the shards are spread
// evenly; internal/spread implements it. It has no say in who holds the shard: the lease has. The
// methods do not block.
type Seat interface {
	// Take reports whether the replica may acquire the lease, which is free. If so, Leave follows
	// once the replica does not hold the lease any more, or has not acquired it.
	Take() bool
	Leave()

	// Follow says that another replica holds the lease, and whether it is about to hand it over.
	// It reports whether this replica would acquire it.
	Follow(stopping bool) bool

	// Hurried reports whether the entry is to be read before its time, once.
	Hurried() bool
}

// hurried reports whether the entry is to be read now although it was to be read later.
func (r *Runner) hurried() bool { return r.job.Seat != nil && r.job.Seat.Hurried() }

// seated acquires the lease and does what is due under it, if this replica may hold it.
func (r *Runner) seated(acquire func() time.Duration) time.Duration {
	if r.job.Seat == nil {
		return acquire()
	}
	if !r.job.Seat.Take() {
		r.reached()
		r.note(nil)
		return r.readAgain(r.client.Jitter.Half(r.client.Length / 3))
	}
	defer r.job.Seat.Leave()
	return acquire()
}

// follow has a replica that would not acquire a lease wait as for any run, also if the run is about
// to be handed over.
func (r *Runner) follow(a plan.Action) plan.Action {
	if a.What == plan.Follow && r.job.Seat != nil && !r.job.Seat.Follow(r.view.rec.Run.Stopping) {
		a.Most = 0
	}
	return a
}
