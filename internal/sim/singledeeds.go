package sim

import (
	"context"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// whileItRuns waits for a run of the job, or for a function that holds the lock, and returns its replica.
func whileItRuns(c *Cluster, job string, r *draw.Roll) (*replica, time.Time) {
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(r.Between(0, time.Second)) {
		if c.underWay(job, 10*time.Second) == nil {
			continue
		}
		time.Sleep(r.Between(0, 4*time.Second))
		if one := c.underWay(job, time.Minute); one != nil {
			return one, time.Time{}
		}
	}
	return nil, time.Time{}
}

// underWay is the replica that runs a job with a living context since a while at most, or a singleton, or holds a lock; nil: none does.
func (c *Cluster) underWay(job string, while time.Duration) (one *replica) {
	last := trace.Event{}
	c.log.Edit(func() {
		for _, e := range slices.Backward(c.log.Events) {
			if e.What == trace.Ran && (e.Job == job || e.Lock == job) {
				last = *e
				break
			}
		}
	})
	if time.Since(last.Time) > while && !last.Tick.IsZero() {
		return nil
	}
	for _, s := range c.slots {
		if r := s.now(); last.End.IsZero() && last.Cancelled.IsZero() && r != nil && r.Machine.Name == last.Replica && !r.Gone() {
			return r
		}
	}
	return nil
}

// beforeItsTick waits for the second before a tick of the job, and returns the replica that holds the lease for it.
func beforeItsTick(c *Cluster, job string, r *draw.Roll) (*replica, time.Time) {
	for range 10 {
		tick := time.Now().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(tick) - r.Between(50*time.Millisecond, 900*time.Millisecond))
		if i := c.holder(job); i >= 0 && c.underWay(job, time.Minute) == nil {
			return c.slots[i].now(), tick
		}
		time.Sleep(time.Until(tick.Add(time.Second)))
	}
	return nil, time.Time{}
}

func anyReplica(c *Cluster, _ string, r *draw.Roll) (*replica, time.Time) {
	return c.slots[r.Below(len(c.slots))].now(), time.Time{}
}

func (c *Cluster) kills(one *replica, _ *trace.Event, _ *draw.Roll) { one.Crash("single") }

func (c *Cluster) terminates(one *replica, _ *trace.Event, _ *draw.Roll) {
	c.slots[one.Machine.Slot].order("restart")
}

func (c *Cluster) suspends(one *replica, e *trace.Event, _ *draw.Roll) {
	const d = 2 * longestLease
	c.log.Edit(func() { e.End = e.Time.Add(d) })
	one.Suspend(d, "single")
	time.Sleep(d)
}

// cutsOff has the network fail for one replica, or for all.
func (c *Cluster) cutsOff(one *replica, e *trace.Event, r *draw.Roll) {
	f := draw.NetworkFault{From: e.Time, To: e.Time.Add(outage), Slot: one.Machine.Slot, Fault: draw.Pick(r, trace.Drop, trace.Refuse, trace.Busy), Share: 1}
	switch e.Op {
	case trace.CutAll:
		f.Slot = -1
	case trace.DenyOne:
		f.Fault, f.To = trace.ReadOnly, e.Time.Add(4*time.Minute)
	}
	c.net.Add(f)
	c.log.Edit(func() { e.End = f.To })
	time.Sleep(time.Until(f.To))
}

// unlocksIt has an operator end the lease of the run. A run that ignores its context goes on for a while.
func (c *Cluster) unlocksIt(_ *replica, e *trace.Event, r *draw.Roll) {
	if e.Op == trace.UnlockDeaf {
		c.turn(e, trace.Deaf)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = c.desk(e.Job, r).Unlock(ctx, e.Job, e.Op != trace.Unlock) // the next holder may be first to write
	c.log.Edit(func() { e.Heard = time.Now() })
}

// silences has the run report no progress from some moment on.
func (c *Cluster) silences(_ *replica, e *trace.Event, _ *draw.Roll) {
	c.turn(e, map[string]trace.Behavior{trace.Stall: trace.Silent, trace.StallDeaf: trace.Stubborn}[e.Op])
}

// turn has the run of a job behave in another way from now on, and waits until it does.
func (c *Cluster) turn(e *trace.Event, b trace.Behavior) {
	c.turned.Store(e.Job, b)
	for range 6000 {
		if _, still := c.turned.Load(e.Job); !still {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.log.Edit(func() { e.Time = time.Now() })
}

// aborts has a replica with another definition of the job up for a while.
func (c *Cluster) aborts(_ *replica, e *trace.Event, r *draw.Roll) {
	defs := slices.Clone(c.Program)
	draw.Redefine(defs, e.Job, r)
	one := (&slot{Cluster: c, index: c.Replicas + 1}).startWith("v1.1", defs, trace.Aborted)
	time.Sleep(r.Between(5*time.Second, time.Minute))
	if r.Chance(0.5) {
		one.Crash(trace.Aborted)
	} else {
		one.stop()
	}
	c.log.Edit(func() { e.End = time.Now() })
}

// pauses has an operator pause the job for some ticks.
func (c *Cluster) pauses(_ *replica, e *trace.Event, r *draw.Roll) {
	c.orderFor(e, soloist.OrderPause, r)
	time.Sleep(150 * time.Second)
	c.log.Edit(func() { e.End = time.Now() })
	c.orderFor(e, soloist.OrderResume, r)
}

func (c *Cluster) ordersIt(_ *replica, e *trace.Event, r *draw.Roll) {
	c.orderFor(e, map[string]soloist.OrderKind{trace.CancelRun: soloist.OrderCancel, trace.HandOver: soloist.OrderStepDown, trace.RunOrdered: soloist.OrderRun}[e.Op], r)
}

// orderFor gives an order for the job of a single fault.
func (c *Cluster) orderFor(e *trace.Event, kind soloist.OrderKind, r *draw.Roll) {
	o := soloist.Order{Kind: kind, Job: e.Job, By: trace.Orderer}
	if kind == soloist.OrderRun {
		o.Request = c.newRequest("ordered-%d")
		c.log.Edit(func() { e.Request = o.Request })
	}
	if err := c.atDesk(o, r); err != nil {
		panic(err)
	}
	c.log.Edit(func() {
		if e.Heard.IsZero() { // of a pause, its begin
			e.Heard = time.Now()
		}
	})
}

// askForSolo has two replicas ask for a lock, one after the other.
func (c *Cluster) askForSolo() {
	c.log.Edit(func() { c.log.Locks[solo] = trace.Lock{Slots: 1, Lease: draw.Fence} })
	for i, s := range c.slots[:2] {
		one := s.now()
		one.byHand.Go(func() { one.holdSolo(i) })
		time.Sleep(time.Second)
	}
}

// holdSolo calls a function under the lock, for a minute or less.
func (r *replica) holdSolo(nth int) {
	l := r.Lock(solo)
	l.Lease = draw.Fence
	takes := time.Minute / time.Duration(1+5*nth)
	roll := draw.New(r.c.Seed, nth, solo, r.Machine.Name, trace.TimeOfDay(time.Now()))
	w := &lockWork{c: r.c, m: r.Machine, lease: draw.Fence, takes: takes, roll: roll, behavior: trace.Fine, effects: true}
	id := r.Machine.Name + "/" + solo + "/" + trace.TimeOfDay(time.Now())
	_ = r.c.called(r.ctx, r.Machine, trace.Event{Op: "do", Lock: solo, Call: id}, func() error {
		return l.Do(r.ctx, func(ctx context.Context, run *soloist.Run) error {
			return w.hold(ctx, run, trace.Event{Lock: solo, Call: id})
		})
	})
}

// endAll has all replicas of a cluster that scales to zero end at once, when one of them is up: then it is the queue of alarms
// alone that brings the next one up.
func (c *Cluster) endAll() {
	r := draw.New(c.Seed, 0, "single", trace.KillAll)
	for range 4 {
		for !slices.ContainsFunc(c.slots, func(s *slot) bool { return s.now() != nil && !s.now().Gone() }) {
			time.Sleep(time.Second)
		}
		time.Sleep(r.Between(0, time.Minute))
		c.log.Add(trace.Event{What: trace.Single, Op: trace.KillAll})
		for _, s := range c.slots {
			if one := s.now(); one != nil {
				one.Crash("single")
			}
		}
		time.Sleep(r.Between(30*time.Minute, 3*time.Hour))
	}
}

const (
	longestLease = 30 * time.Second
	outage       = 30 * time.Second
	leaves       = 150 * time.Second // until most singles are left behind
)

// solo is a lock that two replicas ask for.
const solo = "solo"
