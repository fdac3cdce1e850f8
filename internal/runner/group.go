package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// groupPatience is how long a step waits for a slot that others hold. Then it looks at the entry and
// the orders again.
const groupPatience = 5 * time.Second

// acquireInGroup acquires a slot of the group of the job, and then the lease. The slot comes first: a
// tick that waits for a slot is not claimed, so that any replica may have it. What needs no run needs
// no slot.
func (r *Runner) acquireInGroup(ctx context.Context, c *call, a plan.Action) (rest time.Duration) {
	c.slot = slot{}
	v := r.decideBy(c)
	enough := c.request != "" || r.hasTime(ctx, c, &v) && v.Claims != plan.NoRun
	next, _ := r.job.Policy.Claim(v)
	if !next.Run || !enough {
		c.slot = slot{held: context.WithoutCancel(ctx), none: true}
		defer func() { c.slot = slot{} }()
		return r.acquire(ctx, c, a)
	}
	lease.Sleep(ctx, r.client.Jitter.UpTo(time.Millisecond)) // jobs whose ticks come together ask in an order that is drawn
	got, err := r.inSlot(ctx, c, func() { rest = r.acquire(ctx, c, a) })
	switch {
	case got:
		return rest
	case ctx.Err() != nil:
		if err != nil {
			c.short = r.noSlot(err)
		}
		return r.readAgain(0)
	case errors.Is(err, store.ErrHeld), errors.Is(err, ErrTrying): // the job that tries reports what keeps it from the slot
		if _, seen := errors.AsType[*HeldError](err); seen { // in a record, and not by another goroutine
			r.reached()
			r.note(nil)
		}
		if store.BackfillOf(next.Record.Run.Request) == 0 { // a backfill yields
			r.waits(c, next.Record.Run.Tick, err)
		}
		if c.request == "" && r.job.Policy.UntilTell(&r.view.rec, r.now(), r.orders()) <= 0 {
			r.tellLate(ctx, 0)
		}
		return r.readAgain(0)
	}
	err = r.noSlot(err)
	if c.request != "" { // who asks decides whether to ask again
		c.slot.full = err
	}
	return r.unusable(false, err)
}

// inSlot calls f with a slot of the group, and returns once the slot is given back, which is when the
// run is over. It returns false if it got no slot, and why.
func (r *Runner) inSlot(ctx context.Context, c *call, f func()) (got bool, err error) {
	// A stop ends the wait for the slot, and not the slot: the run has its grace.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := context.AfterFunc(ctx, cancel)
	held, ended := make(chan slot), make(chan error, 1)
	go func() {
		undo := stopped
		err := r.job.Group.Do(waiting, r.groupPatience(c), func(slot context.Context) {
			if !stopped() { // this context has ended too, and could not show the loss of the slot
				return
			}
			s := newSlot(slot)
			held <- s
			<-s.over
			undo = context.AfterFunc(ctx, cancel) // from now on a stop leaves little time for the outcome
		})
		undo()
		ended <- err
	}()
	select {
	case err = <-ended:
		return false, err
	case c.slot = <-held:
	}
	f()
	c.slot.free()
	r.source.setBusy(true) // its outcome may take as long as a run's
	defer r.source.setBusy(false)
	<-ended
	c.slot = slot{}
	return true, nil
}

// groupPatience returns how long this call waits for a slot before it looks again. A manual run waits
// no longer than for a lease.
func (r *Runner) groupPatience(c *call) time.Duration {
	if c.request != "" {
		return r.client.CallTimeout()
	}
	return groupPatience
}

// waits notes that a tick, or a manual run, waits for a slot. If others are known to have the slots, the group is the reason of a
// tick that is not run in its time.
func (r *Runner) waits(c *call, tick time.Time, err error) {
	c.again = true
	if !errors.Is(err, store.ErrHeld) {
		c.slot.full = r.noSlot(ErrTrying) // without the deadline of err, which is not that of the caller
		return
	}
	c.slot.full = busyError(fmt.Sprintf("the group %s has no free slot", r.job.Policy.Group))
	r.detail("the group of the job has no free slot", nil)
	if c.request != "" {
		return
	}
	w := &r.view.waited
	if !w.From.After(r.view.rec.Watermark) { // those before it have their outcome
		w.From = tick.Add(-1)
	}
	w.To = tick
}

// noSlot is the error of a call that got no slot, though no other is known to hold all of them.
func (r *Runner) noSlot(err error) error {
	return fmt.Errorf("no slot of the group %s can be used: %w", r.job.Policy.Group, err)
}

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
