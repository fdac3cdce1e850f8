package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A lockPlan is a lock as a seed draws it, and how it is used.
type lockPlan struct {
	name    string
	slots   int
	lease   time.Duration
	users   int           // goroutines of each replica
	longest time.Duration // that it is held, most of the time
	rest    time.Duration // between two calls, on average
}

// drawLocks draws the locks of a seed, for two thirds of all seeds. Its dice are its own, so the
// jobs of a seed do not depend on them.
func drawLocks(seed uint64) (all []lockPlan) {
	r := newRoll(seed, 0, "locks")
	if seed%10 != 0 && r.chance(0.4) {
		return nil
	}
	for _, name := range []string{"north", "tenant-42", "Kunde/7"}[:1+r.below(3)] {
		all = append(all, lockPlan{name: name, slots: pick(r, 1, 1, 2, 3), lease: pick(r, 5*time.Second, 15*time.Second, 20*time.Second, 30*time.Second, 60*time.Second),
			users: 1 + r.below(3), longest: pick(r, 50*time.Millisecond, 2*time.Second, 20*time.Second, 90*time.Second), rest: pick(r, 5*time.Second, 20*time.Second, time.Minute, 20*time.Minute)})
	}
	return all
}

// entries are the names of the entries of the locks.
func entries(locks []lockPlan) (all []string) {
	for _, l := range locks {
		for i := range l.slots {
			all = append(all, entry.OfSlot(entry.Lock, i, l.name))
		}
	}
	return all
}

// lockFaults is what befalls the locks of a seed alone: operators who end leases and delete
// entries, and replicas that crash, are suspended or stop at points of their calls.
func lockFaults(seed uint64, start, end time.Time, locks []lockPlan) []plannedFault {
	return slotFaults(seed, start, end, entries(locks), "lock faults", ofLock)
}

// slotFaults is what befalls some slots. Their points begin with area.
func slotFaults(seed uint64, start, end time.Time, names []string, dice, area string) (all []plannedFault) {
	if quiet(seed) != "" || len(names) == 0 {
		return nil
	}
	r := newRoll(seed, 0, dice)
	every := func(mean time.Duration, draw func(d *plannedFault)) {
		if r.chance(0.15) {
			return
		}
		for t := start.Add(r.around(mean)); t.Before(end); t = t.Add(r.around(mean)) {
			d := plannedFault{at: t, job: names[r.below(len(names))]}
			draw(&d)
			all = append(all, d)
		}
	}
	point := func() string { return area + Points()[r.below(len(Points()))] }
	every(8*time.Minute, func(d *plannedFault) { d.what, d.job = "arm", point() })
	every(6*time.Minute, func(d *plannedFault) { d.what, d.job, d.d = "arm", point(), r.between(time.Second, 75*time.Second) })
	every(20*time.Minute, func(d *plannedFault) { d.what, d.job, d.d = "arm", point(), stopping })
	every(10*time.Minute, func(d *plannedFault) { d.what = "break now" })
	every(12*time.Minute, func(d *plannedFault) { d.what = "break" })
	every(60*time.Minute, func(d *plannedFault) { d.what = "delete" })
	every(5*time.Minute, func(d *plannedFault) { d.what = sweeps })
	return all
}

// ofLock begins the points at which a machine comes by for a lock, or for what is done once. They
// are apart from those of jobs, so that locks take no fault away from those.
const ofLock = "lock "

// at is machine.at for one part of a call.
func (c *call) at(when string) { c.machine.at(pointOf(c.Job, c.Op+when)) }

func pointOf(job, point string) string {
	switch n, _ := entry.Parse(job); {
	case n.Kind == entry.Group:
		return ofGroup + point
	case n.Kind == entry.Member:
		return ofMember + point
	case trace.IsSlot(job):
		return ofLock + point
	}
	return point
}

// useLocks has a replica use its locks until it stops, or has made its last calls in a healed cluster.
func (r *replica) useLocks() {
	for _, p := range r.c.locks {
		dice := newRoll(r.c.Seed, 0, "lock of", r.machine.name, p.name)
		l := r.Lock(p.name)
		l.Slots, l.Lease = p.slots, p.lease
		if dice.chance(0.2) { // of an older or a younger version of the program
			l.Slots, l.Lease = 1+dice.below(p.slots), pick(dice, 5*time.Second, 15*time.Second, 30*time.Second, 45*time.Second)
		}
		l.Overrun = func(name string, cause error) { r.overranLock(p.name, cause) }
		r.c.log.Edit(func() {
			d := r.c.log.Locks[p.name]
			d.Slots, d.Lease, d.Users = max(d.Slots, l.Slots), max(d.Lease, l.Lease, fence), d.Users+p.users
			r.c.log.Locks[p.name] = d
		})
		for n := range p.users {
			u := &lockUser{r, p, l, fmt.Sprintf("%s/%s/%d", r.machine.name, p.name, n)}
			r.byHand.Go(u.live)
		}
	}
}

// overranLock is overran for a lock.
func (r *replica) overranLock(lock string, cause error) {
	if !r.gone() {
		e := r.log.Add(trace.Event{What: trace.Overran, Replica: r.machine.name, Lock: lock, Note: why(cause)})
		r.endAfterOverrun(lock, e)
	}
}

// A lockUser is a goroutine that uses a lock again and again.
type lockUser struct {
	*replica
	plan lockPlan
	lock *soloist.Lock
	id   string
}

// live makes call after call. The last one is the one that begins after all faults are over.
func (u *lockUser) live() {
	for n := 1; ; n++ {
		r := newRoll(u.c.Seed, n, "lock call", u.id)
		last := !u.rests(r)
		if u.ctx.Err() != nil || !u.machine.sleep(u.ctx, 0, r) {
			return
		}
		if u.call(r, fmt.Sprint(u.id, "/", n)); last {
			return
		}
	}
}

// rests waits between two calls. It returns false if the cluster is healed by then.
func (u *lockUser) rests(r *roll) bool {
	d := r.around(u.plan.rest)
	if r.chance(0.2) {
		d = r.between(0, 100*time.Millisecond)
	}
	select {
	case <-time.After(d):
	case <-u.ctx.Done():
	case <-u.c.healed:
		u.machine.rest(u.ctx, r.between(time.Millisecond, 3*time.Second))
	}
	return !u.c.calm()
}

// call makes one call, and notes what came of it.
func (u *lockUser) call(r *roll, id string) {
	op, by := "do", u.lock.Do
	if r.chance(0.3) {
		op, by = "try", u.lock.TryDo
	}
	ctx, cancel := u.ctx, context.CancelFunc(func() {})
	if r.chance(0.4) && !u.c.calm() {
		ctx, cancel = context.WithTimeout(u.ctx, pick(r, r.between(time.Millisecond, 2*time.Second), r.between(time.Second, 2*time.Minute)))
	}
	defer cancel()
	w := newLockWork(u.c, u.machine, u.plan.longest, u.plan.lease, r)
	w.effects = u.plan.slots == 1
	u.c.called(ctx, u.machine, trace.Event{Op: op, Lock: u.plan.name, Call: id}, func() error {
		return by(ctx, func(ctx context.Context, run *soloist.Run) error {
			return w.do(ctx, run, trace.Event{Lock: u.plan.name, Call: id})
		})
	})
}

// called makes one call for a lock, or for what is done once, and notes what came of it. Of a
// replica that is gone, nothing is heard.
func (c *Cluster) called(ctx context.Context, m *machine, e trace.Event, call func() error) error {
	e.What, e.Replica = trace.Called, m.name
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
	if m.gone() {
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
