package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
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
func (d *driver) acquireInGroup(a plan.Action) (rest time.Duration) {
	d.slot = slot{}
	v := d.decideBy()
	enough := d.request != "" || d.hasTime(&v) && v.Claims != plan.NoRun
	next, _ := d.job.Policy.Claim(v)
	if !next.Run || !enough {
		d.slot = slot{held: context.WithoutCancel(d.ctx), none: true}
		defer func() { d.slot = slot{} }()
		return d.acquire(a)
	}
	lease.Sleep(d.ctx, d.client.Jitter.UpTo(time.Millisecond)) // jobs whose ticks come together ask in an order that is drawn
	got, err := d.inSlot(func() { rest = d.acquire(a) })
	switch {
	case got:
		return rest
	case d.ctx.Err() != nil:
		if err != nil {
			d.short = d.noSlot(err)
		}
		return d.readAgain(0)
	case errors.Is(err, store.ErrHeld), errors.Is(err, ErrTrying): // the job that tries reports what keeps it from the slot
		if _, seen := errors.AsType[*HeldError](err); seen { // in a record, and not by another goroutine
			d.reached()
			d.note(nil)
		}
		if event.BackfillOf(next.Record.Run.Request) == 0 { // a backfill yields
			d.waits(next.Record.Run.Tick, err)
		}
		if d.request == "" && plan.UntilTell(&d.job.Policy, &d.view.rec, d.clock.Best(), d.orders()) <= 0 {
			d.tellLate(0)
		}
		return d.readAgain(0)
	}
	err = d.noSlot(err)
	if d.request != "" { // who asks decides whether to ask again
		d.slot.full = err
	}
	return d.unusable(err)
}

// inSlot calls f with a slot of the group, and returns once the slot is given back, which is when the
// run is over. It returns false if it got no slot, and why.
func (d *driver) inSlot(f func()) (got bool, err error) {
	// A stop ends the wait for the slot, and not the slot: the run has its grace.
	waiting, cancel := context.WithCancel(context.WithoutCancel(d.ctx))
	defer cancel()
	stopped := context.AfterFunc(d.ctx, cancel)
	held, ended := make(chan slot), make(chan error, 1)
	patience := groupPatience
	if d.request != "" { // a manual run waits no longer than for a lease
		patience = d.client.CallTimeout()
	}
	go func() {
		undo := stopped
		err := d.job.Group.Do(waiting, patience, func(within context.Context) {
			if !stopped() { // this context has ended too, and could not show the loss of the slot
				return
			}
			s := slot{held: within}
			s.over, s.end = context.WithCancel(context.Background())
			held <- s
			<-s.over.Done()
			undo = context.AfterFunc(d.ctx, cancel) // from now on a stop leaves little time for the outcome
		})
		undo()
		ended <- err
	}()
	select {
	case err = <-ended:
		return false, err
	case d.slot = <-held:
	}
	f()
	d.slot.free()
	d.source.setBusy(true) // its outcome may take as long as a run's
	defer d.source.setBusy(false)
	<-ended
	d.slot = slot{}
	return true, nil
}

// waits notes that a tick, or a manual run, waits for a slot. If others are known to have the slots, the group is the reason of a
// tick that is not run in its time.
func (d *driver) waits(tick time.Time, err error) {
	d.again = true
	if !errors.Is(err, store.ErrHeld) {
		d.slot.full = d.noSlot(ErrTrying) // without the deadline of err, which is not that of the caller
		return
	}
	d.slot.full = busyError(fmt.Sprintf("the group %s has no free slot", d.job.Policy.Group))
	d.detail("the group of the job has no free slot", nil)
	if d.request != "" {
		return
	}
	w := &d.view.waited
	if !w.From.After(d.view.rec.Watermark) { // those before it have their outcome
		w.From = tick.Add(-1)
	}
	w.To = tick
}

// noSlot is the error of a call that got no slot, though no other is known to hold all of them.
func (b *base) noSlot(err error) error {
	return fmt.Errorf("no slot of the group %s can be used: %w", b.job.Policy.Group, err)
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
	held context.Context    // ends when the slot is lost; nil: the call has none
	over context.Context    // ends when the slot is needed no more; nil: the call has none
	end  context.CancelFunc // ends over
	none bool               // nothing is to be run, so that no slot is needed: ticks are only settled
	full error              // why the call got no slot; nil: it did not ask, or got one
}

// errSlotLost ends the trust in the lease of a run whose slot is lost. The lease itself is still held.
var errSlotLost = fmt.Errorf("%w: that of the slot of its group", store.ErrLost)

// free gives the slot back: the run is over, and what follows is about its own entry alone. It may be
// called again.
func (s *slot) free() {
	if s.end != nil {
		s.end()
	}
}

// bind ends the trust in a lease when the slot of its run is lost, until done is called.
func (s *slot) bind(l *lease.Session) (done func()) {
	if s.over == nil {
		return func() {}
	}
	if s.held.Err() != nil { // lost while the lease was acquired
		l.Lose(errSlotLost)
		return func() {}
	}
	over := s.over
	undo := context.AfterFunc(s.held, func() {
		if over.Err() == nil {
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
	if err != nil {
		err = fmt.Errorf("its shards cannot be spread over the replicas: %w", err)
	}
	for _, s := range r.jobs.spread {
		r.trouble(s, err)
	}
}

// seated acquires the lease and does what is due under it, if this replica may hold it.
func (d *driver) seated(acquire func() time.Duration) time.Duration {
	if d.job.Seat == nil {
		return acquire()
	}
	if !d.job.Seat.Take(d.failedOn()) {
		d.reached()
		d.note(nil)
		return d.readAgain(d.client.Jitter.Half(d.client.Length / 3))
	}
	defer d.job.Seat.Leave()
	return acquire()
}

// failedOn returns the other replica on which the last run has failed or stalled, empty if there is none.
func (r *Runner) failedOn() string {
	run := &r.view.rec.Run
	if r.ranLast() || run.Status != event.Failed && run.Status != event.Stalled {
		return ""
	}
	return run.Replica
}

// follow has a replica that would not acquire a lease wait as for any run, also if the run is about
// to be handed over. Where listings show it a chance, it looks no more than is needed to answer a
// mark; see definition.go of internal/plan.
func (d *driver) follow(a plan.Action) plan.Action {
	if a.What != plan.Follow || d.job.Seat == nil || d.job.Seat.Follow(d.view.rec.Run.Stopping) {
		return a
	}
	if a.Most = 0; d.job.Seat.Listed() {
		a.After, a.Jitter = time.Until(d.replica.reads.LookBy(time.Now())), 0
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
