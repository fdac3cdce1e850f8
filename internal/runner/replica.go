// Package runner takes one job on one replica from tick to tick: it reads the job's
// entry, lets internal/plan decide, acquires the lease, writes the claim, runs the
// user's function by internal/supervise, writes the outcome and releases the lease.
// [Loop] does that until the replica stops; [Runner.RunDue] does it once, for
// a platform that wakes the program up; [Runner.RunNow] runs the job manually.
//
// A [Runner] belongs to one goroutine and needs no locks. What other goroutines ask
// of it, such as Health and StepDown, goes through its state.
package runner

import (
	"context"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A Replica is what the jobs of one process share.
type Replica struct {
	App     string
	Name    string
	Store   store.Store
	Grace   time.Duration
	Alone   func(context.Context) bool    // no other replica is up; nil: one is assumed to be
	Overrun func(job string, cause error) // called when a run goes on without its lease; nil: it is not
	Clock   *lease.Clock
	Orders  *control.Watch // of operators; nil: the store keeps none

	// Events receives all that happens. Any goroutine calls it, also under a lock or just before
	// a lease runs out, so it must not block.
	Events func(event.Event)
	// Flush waits until the log lines of all events are written, for at most d.
	Flush func(d time.Duration)

	Created time.Duration // elapsed time when the scheduler was made

	birth  birth // see Started
	jobs   roster
	vitals vitals
	reads  gathering
}

// Wall reads the wall clock, without a monotonic reading.
func (r *Replica) Wall() time.Time { return r.Clock.Wall() }

// A vitals is what keeps a replica from its work.
type vitals struct {
	outage      outage
	degradation degradation
}

// A roster is the jobs of a replica, how much of their work it does, and what it is about to start.
type roster struct {
	states []*state  // of all runners, in their order, and of spread
	spread []*source // one for each singleton whose shards are spread
	load   load
	starts starts
}

// A birth is Created by the service's clock, computed once.
type birth struct {
	once sync.Once
	at   time.Time
}

// Started returns when this replica started, by the service's clock, so that replicas
// can decide which of them is the younger. It is computed once, and only after the
// first answer of the store: before that it could only come from the wall clock, and
// a replica that started with a fast wall clock in an outage would keep younger
// definitions away for hours.
func (r *Replica) Started() time.Time {
	r.birth.once.Do(func() {
		r.birth.at = r.Clock.Best().Add(r.Created - r.Clock.Elapsed()).Round(0).UTC()
	})
	return r.birth.at
}

// degraded returns why this replica starts nothing new, nil if it does start. A run
// that ignores the end of its context can only be ended with the process, and each
// further run would be lost with it. A run of an EveryReplica job is no reason: all
// replicas run that job at once, and none would be left.
func (r *Replica) degraded() error {
	if cause := r.vitals.degradation.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Emit hands over an event, with the time and the name of this replica.
func (r *Replica) Emit(e event.Event) {
	e.Time, e.Replica = r.Clock.Best().Round(0).UTC(), r.Name
	r.Events(e)
}
