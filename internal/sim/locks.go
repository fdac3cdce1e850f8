package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// useLocks has a replica use its locks until it stops, or has made its last calls in a healed cluster.
func (r *replica) useLocks() {
	for _, p := range r.c.locks {
		dice := draw.New(r.c.Seed, 0, "lock of", r.Machine.Name, p.Name)
		l := r.Lock(p.Name)
		l.Slots, l.Lease = p.Slots, p.Lease
		if dice.Chance(0.2) { // of an older or a younger version of the program
			l.Slots, l.Lease = 1+dice.Below(p.Slots), draw.Pick(dice, 5*time.Second, 15*time.Second, 30*time.Second, 45*time.Second)
		}
		l.Overrun = func(string, error) { r.overranLock(p.Name) }
		r.c.log.Edit(func() {
			d := r.c.log.Locks[p.Name]
			d.Slots, d.Lease = max(d.Slots, l.Slots), max(d.Lease, l.Lease, draw.Fence)
			r.c.log.Locks[p.Name] = d
		})
		for n := range p.Users {
			u := &lockUser{r, p, l, fmt.Sprintf("%s/%s/%d", r.Machine.Name, p.Name, n)}
			r.byHand.Go(u.live)
		}
	}
}

// overranLock is overran for a lock.
func (r *replica) overranLock(lock string) {
	if !r.Gone() {
		e := r.Log.Add(trace.Event{What: trace.Overran, Replica: r.Machine.Name, Lock: lock})
		r.endAfterOverrun(lock, e)
	}
}

// A lockUser is a goroutine that uses a lock again and again.
type lockUser struct {
	*replica
	plan draw.LockPlan
	lock *soloist.Lock
	id   string
}

// live makes call after call. The last call begins after all faults are over.
func (u *lockUser) live() {
	for n := 1; ; n++ {
		r := draw.New(u.c.Seed, n, "lock call", u.id)
		last := !u.rests(r)
		if u.ctx.Err() != nil || !u.Machine.Sleep(u.ctx, 0, r) {
			return
		}
		if u.call(r, fmt.Sprint(u.id, "/", n)); last {
			return
		}
	}
}

// rests waits between two calls. It returns false if the cluster is healed by then.
func (u *lockUser) rests(r *draw.Roll) bool {
	d := r.Around(u.plan.Rest)
	if r.Chance(0.2) {
		d = r.Between(0, 100*time.Millisecond)
	}
	select {
	case <-time.After(d):
	case <-u.ctx.Done():
	case <-u.c.healed:
		u.Machine.Rest(u.ctx, r.Between(time.Millisecond, 3*time.Second))
	}
	return !u.c.calm()
}

// call makes one call, and notes what came of it.
func (u *lockUser) call(r *draw.Roll, id string) {
	op, by := "do", u.lock.Do
	if r.Chance(0.3) {
		op, by = "try", u.lock.TryDo
	}
	ctx, cancel := u.ctx, context.CancelFunc(func() {})
	if r.Chance(0.4) && !u.c.calm() {
		ctx, cancel = context.WithTimeout(u.ctx, draw.Pick(r, r.Between(time.Millisecond, 2*time.Second), r.Between(time.Second, 2*time.Minute)))
	}
	defer cancel()
	w := newLockWork(u.c, u.Machine, u.plan.Longest, u.plan.Lease, r)
	w.effects = u.plan.Slots == 1
	u.c.called(ctx, u.Machine, trace.Event{Op: op, Lock: u.plan.Name, Call: id}, func() error {
		return by(ctx, func(ctx context.Context, run *soloist.Run) error {
			return w.do(ctx, run, trace.Event{Lock: u.plan.Name, Call: id})
		})
	})
}

// called makes one call for a lock, or for what is done once, and logs its result. If the replica is
// gone by then, there is no result.
func (c *Cluster) called(ctx context.Context, m *world.Machine, e trace.Event, call func() error) error {
	e.What, e.Replica = trace.Called, m.Name
	noted := c.log.Add(e)
	stop := context.AfterFunc(ctx, func() {
		c.log.Edit(func() {
			if noted.End.IsZero() {
				noted.Cancelled = time.Now()
			}
		})
	})
	defer stop()
	err := call()
	if m.Gone() {
		return err
	}
	c.log.Edit(func() {
		noted.End, noted.Result = time.Now(), kindOf(err)
		if ctx.Err() != nil && noted.Cancelled.IsZero() {
			noted.Cancelled = noted.End
		}
	})
	return err
}

// doOnces has a replica see to it that what is to be done once for a version is done.
func (r *replica) doOnces(version int) {
	for _, p := range r.c.onces {
		key := fmt.Sprint("v", version)
		r.byHand.Go(func() { r.doOnce(p, key) })
	}
}

// doOnce asks until it is done, and now and then after that.
func (r *replica) doOnce(p draw.OncePlan, key string) {
	name := entry.OfKey(p.Name, key)
	id := fmt.Sprintf("%s/%s", r.Machine.Name, name)
	var dice *draw.Roll
	var ask int
	o := &soloist.Once{Name: p.Name, Key: key, Lease: p.Lease, Retry: p.Retry,
		Overrun: func(string, error) { r.overranLock(name) },
		Do: func(ctx context.Context, run *soloist.Run) error {
			w := newLockWork(r.c, r.Machine, p.Longest, p.Lease, draw.New(r.c.Seed, int(run.Token), "once work", id))
			w.effects = true
			return w.do(ctx, run, trace.Event{Job: name, Call: fmt.Sprint(id, "/", ask)})
		}}
	r.Bind(o)
	r.c.log.Edit(func() {
		r.c.log.Onces[name] = trace.Once{Lease: max(p.Lease, draw.Fence), MaxTries: p.Retry.MaxTries, Backoff: p.Retry.Backoff}
	})
	for ask = 1; r.ctx.Err() == nil; ask++ {
		dice = draw.New(r.c.Seed, ask, "once call", id)
		if !r.Machine.Sleep(r.ctx, dice.Between(0, time.Second), dice) || r.ctx.Err() != nil {
			return
		}
		last, err := r.c.calm(), r.askOnce(o, trace.Event{Op: "once", Job: name, Call: fmt.Sprint(id, "/", ask)}, dice)
		if last {
			return
		}
		pause := dice.Around(5 * time.Minute)
		if err != nil {
			pause = dice.Around(30 * time.Second)
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
		case <-r.c.healed:
		}
	}
}

// askOnce makes one call of Run. Some do not wait for long.
func (r *replica) askOnce(o *soloist.Once, e trace.Event, dice *draw.Roll) error {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if dice.Chance(0.2) && !r.c.calm() {
		ctx, cancel = context.WithTimeout(r.ctx, dice.Between(10*time.Millisecond, time.Minute))
	}
	defer cancel()
	return r.c.called(ctx, r.Machine, e, func() error { return o.Run(ctx) })
}
