package runner

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// Spreads adds a singleton whose shards are spread over the replicas to what Health reports.
func (r *Replica) Spreads(singleton string) {
	st := &state{job: singleton, place: len(r.jobs.states)}
	r.jobs.states = append(r.jobs.states, st)
	r.jobs.spread = append(r.jobs.spread, &source{origin: &origin{}, state: st, lists: true})
}

// Spread notes why the shards cannot be spread. Nil means that they can.
func (r *Replica) Spread(err error) {
	for _, s := range r.jobs.spread {
		if err == nil {
			s.state.set(func(n *snapshot) { n.storage = nil })
			r.vitals.outage.end(s, r.Emit)
			continue
		}
		err := fmt.Errorf("its shards cannot be spread over the replicas: %w", err)
		s.state.set(func(n *snapshot) { n.storage = err })
		r.vitals.outage.begin(s, err, r.Emit)
	}
}

// hurried reports whether the entry is to be read now although it was to be read later.
func (r *Runner) hurried() bool { return r.job.Seat != nil && r.job.Seat.Hurried() }

// seated acquires the lease and does what is due under it, if this replica may hold it.
func (r *Runner) seated(acquire func() time.Duration) time.Duration {
	if r.job.Seat == nil {
		return acquire()
	}
	if !r.job.Seat.Take(r.failedOn()) {
		r.reached()
		r.note(nil)
		return r.readAgain(r.client.Jitter.Half(r.client.Length / 3))
	}
	defer r.job.Seat.Leave()
	return acquire()
}

// failedOn returns the other replica on which the last run has failed or stalled, empty if there is none.
func (r *Runner) failedOn() string {
	run := &r.view.rec.Run
	if r.ranLast() || run.Status != store.Failed && run.Status != store.Stalled {
		return ""
	}
	return run.Replica
}

// leftToOthers returns for how long a replica leaves a singleton to the others after a stall. Those that
// have their parts of the shards look at each third of a lease, however near an end is.
func (r *Runner) leftToOthers() time.Duration {
	if r.job.Seat == nil {
		return headStart
	}
	return r.approach()
}

// follow has a replica that would not acquire a lease wait as for any run, also if the run is about
// to be handed over. Where listings show it a chance, it looks no more than is needed to answer a
// mark; see definition.go of internal/plan.
func (r *Runner) follow(a plan.Action) plan.Action {
	if a.What != plan.Follow || r.job.Seat == nil || r.job.Seat.Follow(r.view.rec.Run.Stopping) {
		return a
	}
	if a.Most = 0; r.job.Seat.Listed() {
		a.After, a.Jitter = time.Until(r.replica.reads.LookBy(time.Now())), 0
	}
	return a
}

// A Seat says whether this replica may hold a shard of a singleton, so that the shards are spread
// evenly; internal/spread implements it. It has no say in who holds the shard: the lease has. The
// methods do not block.
type Seat interface {
	// Take reports whether the replica may acquire the lease, which is free. If so, Leave follows
	// once the replica does not hold the lease any more, or has not acquired it. failedOn names the
	// other replica on which the last run has failed or stalled; empty: there is none.
	Take(failedOn string) bool
	Leave()

	// Follow says that another replica holds the lease, and whether it is about to hand it over.
	// It reports whether this replica would acquire it.
	Follow(stopping bool) bool

	// Listed reports whether a chance to acquire the lease is found by listings, so that a replica
	// that would not acquire it need not read it.
	Listed() bool

	// Hurried reports whether the entry is to be read before its time, once.
	Hurried() bool
}
