package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A oncePlan is what the replicas of a seed do once for each version of the program.
type oncePlan struct {
	name    string
	lease   time.Duration
	retry   soloist.Retry
	longest time.Duration // that it takes, most of the time
}

// drawOnces draws what is done once, for two thirds of all seeds, from dice of its own.
func drawOnces(seed uint64) (all []oncePlan) {
	r := newRoll(seed, 0, "onces")
	if seed%10 != 0 && r.chance(0.4) {
		return nil
	}
	for _, name := range []string{"migrate", "Warm up"}[:1+r.below(2)] {
		all = append(all, oncePlan{name: name, lease: pick(r, 5*time.Second, 15*time.Second, 30*time.Second, 60*time.Second), longest: pick(r, time.Second, 20*time.Second, 2*time.Minute),
			retry: soloist.Retry{MaxTries: pick(r, 0, 0, 0, 3, 20), Backoff: pick(r, 0, time.Second, 20*time.Second)}})
	}
	return all
}

// doOnces has a replica see to it that what is to be done once for a version is done.
func (r *replica) doOnces(version int) {
	for _, p := range r.c.onces {
		key := fmt.Sprint("v", version)
		r.byHand.Go(func() { r.doOnce(p, key) })
	}
}

// doOnce asks until it is done, and now and then after that.
func (r *replica) doOnce(p oncePlan, key string) {
	name := entry.OfKey(p.name, key)
	id := fmt.Sprintf("%s/%s", r.machine.name, name)
	var dice *roll
	var ask int
	o := &soloist.Once{Name: p.name, Key: key, Lease: p.lease, Retry: p.retry,
		Overrun: func(_ string, cause error) { r.overranLock(name, cause) },
		Do: func(ctx context.Context, run *soloist.Run) error {
			w := newLockWork(r.c, r.machine, p.longest, p.lease, newRoll(r.c.Seed, int(run.Token), "once work", id))
			w.effects = true
			return w.do(ctx, run, trace.Event{Job: name, Call: fmt.Sprint(id, "/", ask)})
		}}
	r.Bind(o)
	r.c.log.Edit(func() {
		r.c.log.Onces[name] = trace.Once{Lease: max(p.lease, fence), MaxTries: p.retry.MaxTries, Backoff: p.retry.Backoff}
	})
	for ask = 1; r.ctx.Err() == nil; ask++ {
		dice = newRoll(r.c.Seed, ask, "once call", id)
		if !r.machine.sleep(r.ctx, dice.between(0, time.Second), dice) || r.ctx.Err() != nil {
			return
		}
		last, err := r.c.calm(), r.askOnce(o, trace.Event{Op: "once", Job: name, Call: fmt.Sprint(id, "/", ask)}, dice)
		if last {
			return
		}
		pause := dice.around(5 * time.Minute)
		if err != nil {
			pause = dice.around(30 * time.Second)
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
		case <-r.c.healed:
		}
	}
}

// askOnce makes one call of Run. Some do not wait for long.
func (r *replica) askOnce(o *soloist.Once, e trace.Event, dice *roll) error {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if dice.chance(0.2) && !r.c.calm() {
		ctx, cancel = context.WithTimeout(r.ctx, dice.between(10*time.Millisecond, time.Minute))
	}
	defer cancel()
	return r.c.called(ctx, r.machine, e, func() error { return o.Run(ctx) })
}
